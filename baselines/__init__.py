"""The methods that Lumberjack is compared with: one file, one method.

What they stand on has files of its own: :mod:`~baselines.coded_classifier` (parameters, checks and
cards of all methods) with :mod:`~baselines.coded_input`, what the non-private references share
(:mod:`~baselines.one_hot_reference`), the trees (``keyed_trees``, ``random_binary_trees``,
``pruned_trees``, ``greedy_trees``) and two mechanisms (``permute_and_flip``, ``private_median``).
"""
