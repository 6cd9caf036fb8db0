"""Privacy mathematics: what noise buys which guarantee. Nothing here draws noise or sees data.

Modules
-------
gaussian
    Exact guarantee of Gaussian noise (Lemma 14): ``get_delta``, ``get_epsilon``, ``get_mu``.
discrete_gaussian
    The discrete Gaussian by the continuous noise that tells no less (``step`` of a group).
zcdp
    Zero-concentrated privacy (Lemma 9): ``get_delta``, ``get_rho`` and the scales of the leaf
    mechanisms.
sparse_threshold
    The threshold query by itself (Theorem 6, Lemmas 3, 5, 15 and 16).
groups
    Groups of queries: what every accounting of several takes and gives back.
joint
    Threshold queries and other groups as one release, or one after the other.
tight
    The worst adaptive adversary against threshold answers, followed step by step: ``get_delta_tight``,
    ``get_epsilon_tight``, ``calibrate_tight``. Import it by name; it compiles what it runs.
guarantee
    What is promised: guarantees and the card of a method.
ledger
    What a fit released, what that gives together, and what several fits give.

All of it is under the neighbouring relation "add or remove one record". Functions named
``get_delta*`` say what given noise satisfies; ``calibrate_*`` say what noise a given guarantee
needs, rounded so that the former confirms the latter. The accounting ``paper`` reproduces
the paper; ``safe`` holds for every adaptive order of queries; ``tight`` does so too with less
noise, provided that nothing of a threshold query but its answer is kept. An argument that is out of
range is refused by a ``ValueError``.

Examples
--------
>>> from lumberjack.accounting import Group, Structure, calibrate_joint, get_delta_joint
>>> trees = Structure("structure", count=210, share=0.75)
>>> noise = calibrate_joint(1.0, 1e-6, trees, [Group("leaves", count=30, share=0.25)])
>>> get_delta_joint(1.0, noise.structure, noise.others) <= 1e-6
True
"""

from lumberjack.accounting import gaussian, joint, sparse_threshold, zcdp
from lumberjack.accounting.groups import Group, JointNoise, Structure
from lumberjack.accounting.guarantee import Guarantee, NeighbouringRelation, PrivacyCard
from lumberjack.accounting.joint import (
    calibrate_joint,
    calibrate_separately,
    get_delta_joint,
    get_delta_joint_parts,
)
from lumberjack.accounting.ledger import Ledger, Release
from lumberjack.accounting.sparse_threshold import (
    PaperDelta,
    SafeDelta,
    ThresholdNoise,
    calibrate_paper,
    calibrate_safe,
    get_delta_paper,
    get_delta_paper_parts,
    get_delta_safe,
    get_error_bound,
    get_n_queries_per_record,
)

__all__ = [
    "Group",
    "Guarantee",
    "JointNoise",
    "Ledger",
    "NeighbouringRelation",
    "PaperDelta",
    "PrivacyCard",
    "Release",
    "SafeDelta",
    "Structure",
    "ThresholdNoise",
    "calibrate_joint",
    "calibrate_paper",
    "calibrate_safe",
    "calibrate_separately",
    "gaussian",
    "get_delta_joint",
    "get_delta_joint_parts",
    "get_delta_paper",
    "get_delta_paper_parts",
    "get_delta_safe",
    "get_error_bound",
    "get_n_queries_per_record",
    "joint",
    "sparse_threshold",
    "zcdp",
]
