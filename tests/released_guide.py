"""A guide of rows, in one call."""

from lumberjack.guide import make_guide, release_cells


def release_guide(values, labels, schema, sigma, generator):
    return make_guide(release_cells(values.T, labels, schema, sigma, generator), schema, sigma)
