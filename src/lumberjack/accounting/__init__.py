"""Privacy mathematics: what noise buys which guarantee. Nothing here draws noise or sees data.

Modules
-------
gaussian
    Exact guarantee of Gaussian noise (Lemma 14): ``get_delta``, ``get_epsilon``, ``get_mu``.
zcdp
    Zero-concentrated privacy (Lemma 9): ``get_delta``, ``get_epsilon``, ``get_rho`` and the scales
    of the leaf mechanisms.
sparse_threshold
    The threshold query (Theorem 6, Lemmas 5, 7, 15, 16, Corollary 17).
joint
    Structure, leaf counts and guide histograms as one release.
tight
    The worst adaptive adversary against threshold answers, followed step by step: ``get_delta_tight``,
    ``get_epsilon_tight``, ``calibrate_tight``. Import it by name; it compiles what it runs.
guarantee
    What is promised: guarantees, the ledger of a fit, the card of a method.

All of it is under the neighbouring relation "add or remove one record". Functions named
``get_delta*`` say what given noise satisfies; ``calibrate_*`` say what noise a given guarantee
needs, rounded so that the former confirms the latter. The accounting ``paper`` reproduces
the paper; ``safe`` holds for every adaptive order of queries; ``tight`` does so too with less
noise, provided that nothing of a threshold query but its answer is kept.

Examples
--------
>>> from lumberjack.accounting import calibrate_safe, get_delta_safe
>>> noise = calibrate_safe(epsilon=1.0, delta=1e-6, m=210)
>>> get_delta_safe(1.0, 210, noise.sigma, noise.margin) <= 1e-6
True
"""

from lumberjack.accounting import gaussian, joint, sparse_threshold, zcdp
from lumberjack.accounting.guarantee import (
    Guarantee,
    Ledger,
    NeighbouringRelation,
    PrivacyCard,
    Release,
)
from lumberjack.accounting.joint import (
    JointNoise,
    calibrate_joint,
    get_delta_joint_safe,
    get_delta_joint_safe_parts,
)
from lumberjack.accounting.sparse_threshold import (
    PaperDelta,
    SummedDelta,
    ThresholdNoise,
    calibrate_paper,
    calibrate_safe,
    calibrate_two_sided,
    get_delta_paper,
    get_delta_paper_parts,
    get_delta_safe,
    get_delta_safe_parts,
    get_delta_two_sided_parts,
    get_error_bound,
    get_margin,
    get_touches_per_tree,
)

__all__ = [
    "Guarantee",
    "JointNoise",
    "Ledger",
    "NeighbouringRelation",
    "PaperDelta",
    "PrivacyCard",
    "Release",
    "SummedDelta",
    "ThresholdNoise",
    "calibrate_joint",
    "calibrate_paper",
    "calibrate_safe",
    "calibrate_two_sided",
    "gaussian",
    "get_delta_joint_safe",
    "get_delta_joint_safe_parts",
    "get_delta_paper",
    "get_delta_paper_parts",
    "get_delta_safe",
    "get_delta_safe_parts",
    "get_delta_two_sided_parts",
    "get_error_bound",
    "get_margin",
    "get_touches_per_tree",
    "joint",
    "sparse_threshold",
    "zcdp",
]
