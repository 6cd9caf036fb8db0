"""Run the benchmark: one run, or with ``-m`` a sweep.

Examples
--------
::

    python run.py
    python run.py -m method=lumberjack,diffprivlib eps=0.5,1,2,4,8
    python run.py --status -m method=lumberjack,diffprivlib eps=0.5,1,2,4,8
"""

import sys
from pathlib import Path

try:
    from lumberjack_bench.command import main
except ModuleNotFoundError as error:
    sys.exit(
        f"error: {error}. The benchmark needs its extra: pip install -c constraints.txt -e '.[bench]'"
    )

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parent / "conf"))
