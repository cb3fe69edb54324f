#!/usr/bin/env python3
"""Derives tables/injecagent.json, the structure of a public benchmark, from a dump of it in JSON.

  derive_injecagent.py --from FILE                 prints the table
  derive_injecagent.py --from FILE --check TABLE   compares instead

What a table holds, and in which form, is as in derive_agentdojo.py. The published cases name the
verbs; what their instructions make of the arguments was read by hand and stands in the dump.
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path

from derive_agentdojo import HERE, Suite, arguments, bare, takes, told, written


def snake(verb):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", verb).lower()


def table(dump):
    manifest = tomllib.loads((HERE / "tables/injecagent.toml").read_text())
    verbs = {name: verb | {"named": set()}
             for service in manifest["services"].values() for name, verb in service["verbs"].items()}
    suite = Suite(verbs)
    # A link in a text counts, and nothing is left open: all of a text is written as shapes.
    def call(about, text, before=()):
        plain = {"function": snake(about.get("function") or about["tool"]), "args": about["args"]}
        entry = {"verb": plain["function"], "args": arguments(suite, plain, "")}
        before = [{"function": snake(other["function"])} for other in before]
        entry |= {"told": True} if told(suite, plain, text) else {}
        return entry | ({"takes": True} if takes(suite, before, plain, text) else {})

    tasks, attacks = [], []
    for number, task in enumerate(dump["user_tasks"]):
        calls = [call(task, "") | {"carries": True}]
        tasks.append({"id": number, "category": "a", "calls": calls, "plan": []})
    for number, attack in enumerate(dump["attacks"]):
        calls = [call(about, attack["goal"], attack["calls"][:place])
                 for place, about in enumerate(attack["calls"])]
        attacks.append({"id": number, "first": attack["family"] == "direct_harm", "calls": calls})
    for entry, task in zip(tasks, dump["user_tasks"]):
        entry["prompt"] = suite.prompt(task["prompt"])
    suite.relate()
    assert len(tasks) * len(attacks) == dump["counts"]["cases_base"]
    about = {"words": suite.shapes, "tasks": tasks, "attacks": attacks}
    return {"package": "InjecAgent", "version": "2024", "benchmark": "base and enhanced",
            "suites": {"injecagent": about}}


def main():
    options = argparse.ArgumentParser(description="derives tables/injecagent.json")
    options.add_argument("--from", dest="dump", metavar="FILE", required=True)
    options.add_argument("--check", metavar="TABLE")
    given = options.parse_args()
    derived = table(json.loads(Path(given.dump).read_text()))
    if not given.check:
        print(written(derived))
    elif bare(json.loads(Path(given.check).read_text())) != bare(derived):
        sys.exit(f"{given.check} is not what is derived; write it anew with `derive_injecagent.py --from {given.dump} > {given.check}`")
    else:
        print("the table is what is derived")


if __name__ == "__main__":
    main()
