"""Solutions that would pass without solving anything: they end the program, lie to the tests, or look for the nonce."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.humanevalfix import LANGUAGES, HumanEvalFix, run

FIX = HumanEvalFix()

TESTS = {
    "Python": "def check(add):\n    assert add(1, 2) == 3\n    assert add(2, 2) == 4\n\ncheck(add)\n",
    "JavaScript": (
        "const testAdd = () => {\n  console.assert(add(1, 2) === 3)\n"
        "  console.assert(JSON.stringify(add(2, 2)) === JSON.stringify(4))\n}\n\ntestAdd()\n"
    ),
    "Java": (
        "public class Main {\n    public static void main(String[] args) {\n        Solution s = new Solution();\n"
        "        if (s.add(1, 2) != 3) {\n            throw new AssertionError();\n        }\n    }\n}\n"
    ),
    "Go": "func TestAdd(t *testing.T) {\n    assert := assert.New(t)\n    assert.Equal(3, Add(1, 2))\n}\n",
    "CPP": "#undef NDEBUG\n#include<assert.h>\nint main(){\n    assert (add(1, 2) == 3);\n}\n",
    "Rust": (
        "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn test_add() {\n"
        "        assert_eq!(add(1, 2), 3);\n    }\n\n}\n"
    ),
}
DECLARATIONS = {"JavaScript": "const add = (a, b) => {\n"}
RIGHT = {
    "Python": "def add(a, b):\n    return a + b\n",
    "JavaScript": "const add = (a, b) => {\n  return a + b\n}\n",
    "Java": "class Solution {\n    int add(int a, int b) { return a + b; }\n}\n",
    "Go": "package main\nfunc Add(a int, b int) int { return a + b }\n",
    "CPP": "int add(int a, int b) { return a + b; }\n",
    "Rust": "fn add(a: i32, b: i32) -> i32 { a + b }\n",
}

READS = """
import os
for place in (".", "/proc/%d/root%s" % (os.getppid(), os.getcwd())):
    for name in os.listdir(place):
        print(open(os.path.join(place, name), errors="replace").read())
"""
LOOKS = """
import os
for name in ("mem", "environ", "cmdline", "fd/0"):
    try:
        print(open(f"/proc/{os.getppid()}/{name}", "rb").read(10**6))
    except OSError as error:
        print(error)
"""
END = "import os\nos._exit(0)\n"

ATTACKS = {
    "Python": {
        "ends the process": END,
        "ends it at exit": "import atexit, os\natexit.register(lambda: os._exit(0))\ndef add(a, b): return 0\n",
        "ends it in a thread": (
            "import os, sys, threading\nthreading.Thread(target=lambda: (sys.exit(0))).start()\n"
            "def add(a, b): threading.Thread(target=os._exit, args=(0,)).start(); return 0\n"
        ),
        "ends it when called": "import os, sys\ndef add(a, b): sys.exit(0)\n",
        "changes the builtins": (
            "import builtins\nclass Quiet(BaseException): pass\nbuiltins.AssertionError = Quiet\n"
            "builtins.exec = builtins.compile = lambda *_: None\ndef add(a, b): return 0\n"
        ),
        "equals everything": (
            "class Any(int):\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\n"
            "def add(a, b): return Any()\n"
        ),
        "equals everything, as no number": (
            "class Any:\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\ndef add(a, b): return Any()\n"
        ),
        "reads the files": READS + END,
        "looks into the tests' process": LOOKS + END,
        "leaves modules for the tests": (
            "for name in ('json', 'math', 'enum', 'random'): open(name + '.py', 'w').write('import os; os._exit(0)')\n"
            "def add(a, b): return 0\n"
        ),
        "hides a builtin": "def check(*_): pass\ndef add(a, b): return 0\n",
    },
    "JavaScript": {
        "ends the process": "process.exit(0)\n",
        "ends it when called": "const add = () => process.exit(0)\n",
        "prints a marker": "console.log('the end')\nprocess.exit(0)\n",
        "changes the console": "console.assert = () => {}\nconst add = () => 0\n",
        "changes what is compared": "JSON.stringify = () => '4'\nconst add = () => ({ toJSON: () => 4 })\n",
        "reads the files": (
            "const fs = require('fs')\nfor (const name of fs.readdirSync('.'))\n"
            "  if (!['questions', 'answers'].includes(name)) console.log(fs.readFileSync(name, 'utf8'))\n"
            "process.exit(0)\n"
        ),
    },
    "Java": {
        "ends the process": "class Solution {\n static { System.exit(0); }\n int add(int a, int b) { return 0; }\n}\n",
        "halts it": "class Solution {\n int add(int a, int b) { Runtime.getRuntime().halt(0); return 0; }\n}\n",
        "reads the files": (
            "import java.nio.file.*;\nclass Solution {\n int add(int a, int b) {\n  try {\n"
            '   System.out.println(Files.readString(Path.of("Main.java")));\n  } catch (Exception e) { }\n'
            "  System.exit(0);\n  return 0;\n }\n}\n"
        ),
    },
    "Go": {
        "ends the process": (
            'package main\nimport "os"\nfunc init() { os.Exit(0) }\nfunc Add(a int, b int) int { return 0 }\n'
        ),
        "runs no test": (
            'package main\nimport "os"\nfunc init() { os.Args = []string{"tests", "-test.run=None"} }\n'
            "func Add(a int, b int) int { return 0 }\n"
        ),
        "leaves the test": (
            'package main\nimport "runtime"\nfunc Add(a int, b int) int { runtime.Goexit(); return 0 }\n'
        ),
    },
    "CPP": {
        "ends the process": "#include <unistd.h>\nint early = (_exit(0), 0);\nint add(int, int) { return 0; }\n",
        "ends it at exit": (
            "#include <stdlib.h>\n#include <signal.h>\n#include <unistd.h>\nvoid end(int) { _exit(0); }\n"
            "int add(int, int) { signal(SIGABRT, end); return 0; }\n"
        ),
        "has a main of its own": (
            "int main() { return 0; }\nint add(int, int) { return 0; }\n#define main tests_of_another\n"
        ),
        "takes the assertions away": (
            "#include <assert.h>\n#undef assert\n#define assert(x)\nint add(int, int) { return 0; }\n"
        ),
        "reads the files": (
            '#include <stdlib.h>\n#include <unistd.h>\nint add(int, int) { system("cat *.cpp"); _exit(0); return 0; }\n'
        ),
    },
    "Rust": {
        "ends the process": "fn add(_: i32, _: i32) -> i32 { std::process::exit(0) }\n",
        "reads the files": (
            'fn add(_: i32, _: i32) -> i32 {\n    println!("{}", include_str!("test_solution.rs"));\n'
            "    std::process::exit(0)\n}\n"
        ),
    },
}


def case(language: str) -> Instance:
    row = {
        "task_id": f"{language}/0",
        "test": TESTS[language],
        "declaration": DECLARATIONS.get(language, ""),
        "buggy_solution": "",
        "canonical_solution": "",
        "import": "",
        "test_setup": "",
    }
    return Instance(f"{language}/0", row)


async def _passed(languages: list[str]) -> dict[str, list[bool]]:
    one_at_a_time = asyncio.Semaphore(2)

    async def passed(language: str, solution: str) -> bool:
        async with one_at_a_time:
            return (await run(case(language), solution)).passed

    return {
        language: await asyncio.gather(
            passed(language, RIGHT[language]), *(passed(language, one) for one in ATTACKS[language].values())
        )
        for language in languages
    }


async def test_a_solution_that_ends_the_program_or_equals_everything_does_not_pass() -> None:
    for solution, passes in (
        (RIGHT["Python"], True),
        (END, False),
        (ATTACKS["Python"]["equals everything"], False),
    ):
        assert (await run(case("Python"), solution)).passed == passes, solution


@pytest.mark.slow
@pytest.mark.parametrize("language", ["CPP", "Java"])
async def test_an_entry_of_the_solution_is_taken_away_as_upstream_does(language: str) -> None:
    entry = {"CPP": "int main() { return 1; }\n", "Java": "public class Main {\n    }\n"}[language]
    if not any(map(shutil.which, LANGUAGES[language].programs[0].split("|"))):
        pytest.skip(FIX.skipped(case(language)))
    assert (await run(case(language), RIGHT[language] + entry)).passed


@pytest.mark.slow
@pytest.mark.parametrize("language", TESTS)
async def test_what_does_not_solve_the_task_does_not_pass_whatever_it_does(language: str) -> None:
    lacking = [one for one in LANGUAGES[language].programs if not any(map(shutil.which, one.split("|")))]
    if lacking or FIX.skipped(case(language)):
        pytest.skip(FIX.skipped(case(language)))
    found = (await _passed([language]))[language]
    passed = dict(zip(["the right solution", *ATTACKS[language]], found, strict=True))
    assert [name for name in passed if passed[name]] == ["the right solution"]
