"""Start a method of your own: write a module that works, with its yaml beside it.

python scripts/new_method.py noisy_histogram               noisy_histogram.py and noisy_histogram.yaml, here
python scripts/new_method.py noisy_histogram --out ideas   in another folder
python scripts/check_method.py noisy_histogram             the contract of methods, tested
python run.py -m method=noisy_histogram,lumberjack eps=1   in the same table and figure as the others
"""

from __future__ import annotations

import argparse
import keyword
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template

from lumberjack_bench.command import fails_in_one_line
from lumberjack_bench.config import ConfigError
from lumberjack_bench.configured import choices

TEMPLATES = Path(__file__).parent / "method_template"


@fails_in_one_line
def main(arguments: Sequence[str]) -> int:
    """Write the two files of a new method, and say what to do next; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="of the module and of the method, such as noisy_histogram")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER")
    given = parser.parse_args(arguments)
    name = given.name
    if not (name.isidentifier() and name == name.lower()) or keyword.iskeyword(name):
        raise ConfigError(f"a module is named in small letters, digits and _, got {name!r}.")
    if name in (*choices("method"), *sys.stdlib_module_names):
        raise ConfigError(f"there is {name!r} already; choose another name.")
    texts = {
        given.out / f"{name}.py": "module.py.txt",
        given.out / f"{name}.yaml": "method.yaml.txt",
    }
    there = [path for path in texts if path.exists()]
    if there:
        raise ConfigError(f"{str(there[0])!r} is there already and is left as it is.")
    words = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "class_name": "".join(word.capitalize() for word in name.split("_")),
    }
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        for path, template in texts.items():
            text = (TEMPLATES / template).read_text(encoding="utf-8")
            path.write_text(Template(text).substitute(words), encoding="utf-8")
            print(path)
    except OSError as error:
        raise ConfigError(f"cannot write to {str(given.out)!r}: {error.strerror}.") from error
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
