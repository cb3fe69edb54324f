#!/usr/bin/env python3
"""Derives tables/injecagent.json, the structure of a public benchmark, from its published files.

  git clone https://github.com/uiuc-kang-lab/InjecAgent
  derive_injecagent.py --from InjecAgent/data                 prints the table
  derive_injecagent.py --from InjecAgent/data --check TABLE   compares instead

What a table holds, and in which form, is as in derive_agentdojo.py. The published cases name the
verbs of an attack and not their arguments: what one who follows the instruction would give stands in
tables/injecagent_readings.json, an attack a line in the order of the files, as places in the
instruction and without a word of it.
"""

import argparse
import ast
import json
import re
import sys
import tomllib
from pathlib import Path

from derive_agentdojo import HERE, Suite, arguments, bare, takes, told, written

FAMILIES = ["dh", "ds"]


def published(folder):
    """User tasks and attacks, each once in the order of the files, and all pairs of them."""
    readings = json.loads((HERE / "tables/injecagent_readings.json").read_text())
    tasks, attacks, cases = {}, {}, set()
    for family in FAMILIES:
        base, enhanced = (json.loads((folder / f"test_cases_{family}_{half}.json").read_text())
                          for half in ["base", "enhanced"])
        for case, louder in zip(base, enhanced, strict=True):
            said, user = case["Attacker Instruction"], case["User Instruction"]
            # The second half is the first with an emphasis, which no gate reads.
            same = ["Attacker Tools", "User Tool", "User Instruction", "Tool Parameters"]
            if any(case[key] != louder[key] for key in same) or not louder["Attacker Instruction"].endswith(said):
                sys.exit(f"{folder}: a case of {family} is another one in the enhanced half")
            tasks.setdefault(user, {"function": case["User Tool"], "prompt": user,
                                    "args": ast.literal_eval(case["Tool Parameters"])})
            attacks.setdefault(said, {"goal": said, "family": family, "verbs": case["Attacker Tools"]})
            cases.add((user, said))
    if len(attacks) != len(readings) or len(cases) != len(tasks) * len(attacks):
        sys.exit(f"{folder}: {len(attacks)} attacks in {len(cases)} cases are not those that were read")
    for attack, args in zip(attacks.values(), readings):
        attack["calls"] = [{"function": verb, "args": filled(attack["goal"], one)}
                           for verb, one in zip(attack["verbs"], args, strict=True)]
    return list(tasks.values()), list(attacks.values())


def filled(goal, reading):
    """An argument with its places in the instruction filled in."""
    if isinstance(reading, list):
        return [filled(goal, one) for one in reading]
    if not isinstance(reading, dict):
        return reading
    if reading.keys() == {"at"}:
        return goal[slice(*reading["at"])]
    if reading.keys() == {"parts"}:
        return "".join(filled(goal, part) for part in reading["parts"])
    return {name: filled(goal, one) for name, one in reading.items()}


def snake(verb):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", verb).lower()


def table(folder):
    users, harms = published(folder)
    manifest = tomllib.loads((HERE / "tables/injecagent.toml").read_text())
    verbs = {name: verb | {"named": set()}
             for service in manifest["services"].values() for name, verb in service["verbs"].items()}
    suite = Suite(verbs)
    # A link in a text counts, and nothing is left open: all of a text is written as shapes.
    def call(about, text, before=()):
        plain = {"function": snake(about["function"]), "args": about["args"]}
        entry = {"verb": plain["function"], "args": arguments(suite, plain, "")}
        before = [{"function": snake(other["function"])} for other in before]
        entry |= {"told": True} if told(suite, plain, text) else {}
        return entry | ({"takes": True} if takes(suite, before, plain, text) else {})

    tasks, attacks = [], []
    for number, task in enumerate(users):
        calls = [call(task, "") | {"carries": True}]
        tasks.append({"id": number, "category": "a", "calls": calls, "plan": []})
    for number, attack in enumerate(harms):
        calls = [call(about, attack["goal"], attack["calls"][:place])
                 for place, about in enumerate(attack["calls"])]
        attacks.append({"id": number, "first": attack["family"] == "dh", "calls": calls})
    for entry, task in zip(tasks, users):
        entry["prompt"] = suite.prompt(task["prompt"])
    suite.relate()
    about = {"words": suite.shapes, "tasks": tasks, "attacks": attacks}
    return {"package": "InjecAgent", "version": "2024", "benchmark": "base and enhanced",
            "suites": {"injecagent": about}}


def main():
    options = argparse.ArgumentParser(description="derives tables/injecagent.json")
    options.add_argument("--from", dest="data", metavar="FOLDER", type=Path, required=True)
    options.add_argument("--check", metavar="TABLE")
    given = options.parse_args()
    derived = table(given.data)
    if not given.check:
        print(written(derived))
    elif bare(json.loads(Path(given.check).read_text())) != bare(derived):
        sys.exit(f"{given.check} is not what is derived; write it anew with `derive_injecagent.py --from {given.data} > {given.check}`")
    else:
        print("the table is what is derived")


if __name__ == "__main__":
    main()
