"""Groups and shares of forests whose accounting is tested in several ways."""

from dataclasses import replace

from lumberjack.accounting import Group, Structure

PLAIN = (Structure("structure", 210, 0.75), (Group("leaves", 30, 0.25),))
GUIDED = (
    Structure("structure", 140, 0.60),
    (Group("leaves", 20, 0.35), Group("guide", 14, 0.05, is_first=True)),
)
STACKED = (
    Structure("structure", 120, 0.45),
    (
        Group("leaves", 20, 0.22),
        Group("guide", 14, 0.28, is_first=True),
        Group("stack", 1, 0.05),
    ),
)
VOTING = (PLAIN[0], (replace(PLAIN[1][0], mechanism="exponential"),))


def groups_of(noise, factor=1.0):
    """Return structure and other groups of a calibration, with all noise multiplied by a factor."""
    structure = replace(
        noise.structure,
        scale=noise.structure.scale * factor,
        margin=noise.structure.margin * factor,
    )
    return structure, [replace(group, scale=group.scale * factor) for group in noise.others]
