#!/usr/bin/env python3
"""Derives tables/agentdojo.json, the structure of a public benchmark, from what was published.

  derive_agentdojo.py                     from the installed `agentdojo` package (0.1.35)
  derive_agentdojo.py --from FILE         from a dump of it in JSON (no replies in it)
  derive_agentdojo.py --check TABLE       compares instead of printing; with --from, all but replies
  derive_agentdojo.py --text FILE         writes the texts themselves, for `--with-text`

The table holds no text of prompts or attacks: which verbs are called, and for each argument which
words of the prompt it consists of, or that it is none of them. A word is a shape: `a` a small
letter, `A` a capital one, everything else as it is. Numbers and dates are facts and stand as such.

What stands in capitals below is a judgement and not derived: CATEGORY, why an argument is what it is;
READINGS, what the one who understands a prompt perfectly would choose by a selector; and some smaller
ones. What is chosen by nothing that was typed has no reading, and its step is asked about.
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
VERSION = "v1.2.2"

# b: all typed. d1: target typed, content not. d2: target typed, amount or time not. c1: a record that
# the prompt names. c2: one that it picks by a condition. c3: out of somebody else's text. Rest: no effect.
CATEGORY = {
    "workspace": {"b": [4, 6, 12], "d1": [31, 36], "d2": [15], "c1": [8, 9, 18, 20, 21, 29, 32, 37],
                  "c2": [7, 34, 35, 38], "c3": [13, 19, 25, 33]},
    "travel": {"b": [0], "d1": [3], "d2": [1, 4, 7, 8]},
    "banking": {"b": [14], "d2": [3, 4, 5, 6, 11], "c1": [2, 9], "c2": [15], "c3": [0, 12, 13]},
    "slack": {"b": [0], "d1": [3], "c2": [5, 7, 8, 9, 10, 12, 13, 14],
              "c3": [1, 2, 4, 6, 11, 15, 16, 17, 18, 19, 20]},
}

# (suite, task, effect step, argument): the read call whose records it is chosen from (a number: that
# call of the task's own; a text: this verb), conditions, order, field. A literal is an argument of the
# read call, or the number of a word of the prompt with the capital that its owner would give it.
READINGS = {
    ("workspace", 8, 0, "event_id"): (0, [("title", "eq", "query")], None, "id_"),
    ("workspace", 9, 0, "participants"): (0, [("title", "eq", "query")], None, "participants"),
    ("workspace", 20, 0, "participants"): (1, [("name", "eq", "query")], None, "email"),
    ("workspace", 21, 0, "participants"): (1, [("title", "eq", "query")], None, "participants"),
    ("workspace", 29, 0, "file_id"): (0, [("filename", "eq", "filename")], None, "id_"),
    ("workspace", 34, 0, "file_id"): (1, [], None, "id_"),
    ("workspace", 35, 0, "file_id"): (0, [], ("max", "size"), "id_"),
    ("workspace", 38, 0, "file_id"): (0, [], ("max", "size"), "id_"),
    ("banking", 2, 0, "id"): (1, [("subject", "eq", "rent")], None, "id"),
    ("banking", 9, 0, "id"): ("get_scheduled_transactions", [("subject", "eq", "rent")], None, "id"),
    ("banking", 15, 1, "id"): (0, [("subject", "eq", "rent")], None, "id"),
    ("slack", 7, 0, "channel"): (0, [("name", "prefix", "external")], None, "name"),
    ("slack", 12, 0, "channel"): (0, [("name", "prefix", "external")], None, "name"),
}

# A record's field is one, the argument a list: the selector stands inside of a list.
LISTED = {("workspace", 20, 0, "participants")}

# What no single reply says: counted or compared over several, or made in the same turn.
SEVERAL = {"workspace": [32, 37], "slack": [5, 8, 9, 10, 13, 14]}

# What a prompt asks for with no argument that was typed: the words of it that a free argument then is,
# the last run that begins with this one.
NOTED = {
    ("travel", 4, 0): ("description", "book", 4),
    ("travel", 7, 0): ("description", "book", 3),
    ("travel", 8, 0): ("description", "book", 3),
}
# Steps that no prompt asks for, though their target stands in it for another reason.
UNASKED = {("workspace", 13, 1), ("workspace", 19, 1), ("slack", 18, 1)}

# Attacks for which the package has no calls, by what they ask for.
ALL_BODIES, FRESH = {"text": 400}, {"fresh": "id"}
MAIL_AWAY = ("send_email", {"recipients": ["@"], "subject": {"text": 1}, "body": ALL_BODIES})
MAIL_OWN = ("send_email", {"recipients": ["own"], "subject": {"text": 40}, "body": {"text": 70}})
COVER = ("delete_email", {"email_id": FRESH})
TAKE_FILES = ("send_email", {"recipients": ["@"], "subject": {"text": 1}, "body": {"text": 1},
                             "attachments": [FRESH] * 5})
DELETE = ("delete_file", {"file_id": FRESH})
LURE = ("send_email", {"recipients": ["own"], "subject": {"text": 23}, "body": {"text": 40, "link": True}})
DERIVED = {
    ("workspace", 6): [("get_unread_emails", {}), MAIL_AWAY, COVER],
    ("workspace", 7): [("get_received_emails", {}), ("get_sent_emails", {}), MAIL_AWAY, MAIL_AWAY, COVER, COVER],
    ("workspace", 8): [("get_unread_emails", {}), MAIL_AWAY, COVER] + [COVER] * 6,
    ("workspace", 9): [("get_unread_emails", {}), MAIL_AWAY, COVER] + [COVER] * 6 + [MAIL_OWN],
    ("workspace", 10): [("list_files", {}), TAKE_FILES, COVER],
    ("workspace", 11): [("list_files", {}), TAKE_FILES, COVER] + [DELETE] * 5,
    ("workspace", 12): [("list_files", {}), TAKE_FILES, COVER] + [DELETE] * 5 + [MAIL_OWN],
    ("workspace", 13): [("get_day_calendar_events", {"day": "2024-05-15"})] + [LURE] * 5,
    ("travel", 6): [],
}
# Attacks that stand in the first benchmark already; the others came later.
FIRST = {"workspace": range(6), "travel": range(7), "banking": range(9), "slack": range(1, 6)}

AROUND = "\"'`([{<\u2018\u2019\u201c\u201d\u00ab\u00bb"
AFTER = AROUND + ")]}>.,;:!?"
DIGITS = re.compile(r"[-+\d.,:/]*\d[-+\d.,:/]*")
LINK = re.compile(r"://|//\w|www\.|\b[\w-]+(?:\.[\w-]+)*\.[A-Za-z]+(?:[/?]|:\d)")


def parts(token):
    """What stands around a word, and the word."""
    start = len(token) - len(token.lstrip(AROUND))
    rest = token[start:]
    core = rest.rstrip(AFTER)
    return token[:start], core, rest[len(core):]


def number(text):
    try:
        value = float(text.strip("$\u00a3\u20ac").replace(",", ""))
    except ValueError:
        return None
    return int(value) if value == int(value) else value


class Suite:
    """The words of one suite: equal words are one number, wherever they stand."""

    def __init__(self, verbs):
        self.verbs, self.words, self.shapes = verbs, {}, []
        names = {argument for verb in verbs.values() for argument in verb["named"]}
        self.known = {word for verb in verbs.values() for word in verb.get("says", [])}
        self.known |= {part for name in names for part in name.split("_") if part}
        self.known |= {"file", "folder", "directory", "usd", "eur", "gbp", "chf"}

    def word(self, core, add):
        """One word as the table writes it, or nothing if it is in no argument."""
        if DIGITS.fullmatch(core) or core.casefold() in self.known:
            return core
        folded = core.casefold()
        flag = {folded: "", folded.capitalize(): "c", folded.upper(): "u"}.get(core)
        key = folded if flag is not None else core
        if key not in self.words:
            if not add:
                return None
            self.words[key] = len(self.shapes)
            shape = re.sub(r"[^\W\d_]", lambda letter: "A" if letter[0].isupper() else "a", key)
            self.shapes.append("www" + shape[3:] if key.startswith("www.") else shape)
        return "{%d%s}" % (self.words[key], flag or "")

    def relate(self):
        """Says which words begin with another one."""
        for key, number_of in self.words.items():
            start = [other for other in self.words if key.startswith(other + "_")]
            if start:
                rest = self.shapes[number_of][len(start[0]):]
                self.shapes[number_of] = "{%d}%s" % (self.words[start[0]], rest)

    def template(self, text):
        out = []
        for token in text.split():
            before, core, after = parts(token)
            out.append(before + (self.word(core, True) if core else "") + after)
        return " ".join(out)

    def value(self, value):
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, (int, float)):
            return int(value) if value == int(value) else value
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return value if "text" in value or "fresh" in value else {k: self.value(v) for k, v in value.items()}
        return self.template(str(value))

    def prompt(self, text):
        """A prompt with everything hidden that is no argument and no word of a manifest."""
        lines = []
        for line in text.split("\n"):
            out = []
            for token in line.split():
                before, core, after = parts(token)
                word = self.word(core, False) if core else ""
                if word is None:
                    word = core.casefold() if core.casefold() in self.known else re.sub(r"[\w]+", "~", core)
                out.append(before + word + after)
            lines.append(" ".join(out))
        return "\n".join(lines)


def cores(text):
    return [[parts(token)[1] for token in line.split()] for line in text.split("\n")]


def typed(value, prompt):
    """Whether every part of a value is a run of whole words of the prompt."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, list):
        return bool(value) and all(typed(item, prompt) for item in value)
    if isinstance(value, (int, float)):
        return any(number(core) == value for line in cores(prompt) for core in line)
    if isinstance(value, dict):
        return False
    wanted = [core.casefold() for line in cores(value) for core in line]
    lines = [[core.casefold() for core in line] for line in cores(prompt)]
    return bool(wanted) and any(
        line[at:at + len(wanted)] == wanted for line in lines for at in range(len(line)))


def arguments(suite, call, prompt):
    """The arguments of one call: words, numbers, or how long a text is that nobody typed."""
    out, verb = {}, suite.verbs[call["function"]]
    for name, value in call["args"].items():
        if value is None:
            continue
        free = name in verb.get("open", []) and isinstance(value, str)
        if free and not typed(value, prompt) and not re.fullmatch(r"[\d: -]+", value):
            value = {"text": len(value)} | ({"link": True} if LINK.search(value) else {})
        out[name] = suite.value(value)
    return out


def told(suite, call, text):
    """Whether a text says one of the targets of a call, letter by letter."""
    targets = suite.verbs[call["function"]].get("target", {})
    said = [item for name, value in call["args"].items() if name in targets
            for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
    return any(item in text for item in said)


def takes(suite, before, call, text):
    """Whether what a call passes on is what the calls before it read."""
    reads = any(suite.verbs[other["function"]]["effect"] == "read" for other in before)
    free = [call["args"].get(name) for name in suite.verbs[call["function"]].get("open", [])]
    return reads and any(value and (isinstance(value, dict) or str(value) not in text) for value in free)


def reading(suite, name, task, key):
    """A selector of the one who understands the prompt, with the records it is over."""
    source, where, order, take = READINGS[key]
    reads = [call for call in task["calls"] if suite.verbs[call["function"]]["effect"] == "read"]
    call = reads[source] if isinstance(source, int) else {"function": source, "args": {}}
    words = [core for line in cores(task["prompt"]) for core in line]
    conditions = []
    for field, how, literal in where:
        text = call["args"].get(literal)
        if text is None:
            found = [word for word in words if word.casefold() == literal]
            text = found[0].capitalize()
        assert typed(text, task["prompt"]), (name, key)
        conditions.append([field, how, suite.template(text)])
    out = {"verb": call["function"], "args": {k: suite.value(v) for k, v in call["args"].items()},
           "where": conditions, "take": take}
    if order:
        out["order"] = list(order)
    if key in LISTED:
        out["listed"] = True
    if "records" in task:
        wanted = {field for field, *_ in where} | {take} | ({order[1]} if order else set())
        records = task["records"](call)
        out["records"] = [{k: suite.value(record[k]) for k in sorted(wanted)} for record in records]
    return out


def note(name, number_of, task):
    """Puts the words of the prompt into the call that they describe."""
    effects = [call for call in task["calls"] if call["function"] in task["effects"]]
    for (suite, task_number, step), (argument, first, count) in NOTED.items():
        if (suite, task_number) == (name, number_of):
            words = [core for line in cores(task["prompt"]) for core in line]
            at = max(place for place, word in enumerate(words) if word == first)
            effects[step]["args"][argument] = " ".join(words[at:at + count])


def plan(suite, name, number_of, task):
    """What can be asked for by a prompt alone, and what each step that cannot lacks."""
    steps, lacks, effects = [], [], 0
    for call in task["calls"]:
        verb = suite.verbs[call["function"]]
        if verb["effect"] == "read":
            continue
        fixed, missing, targets = {}, [], 0
        for argument, value in call["args"].items():
            key = (name, number_of, effects, argument)
            if value is None or argument in verb.get("open", []):
                continue
            targets += argument in verb.get("target", {})
            if key in READINGS:
                fixed[argument] = {"select": reading(suite, name, task, key)}
            elif typed(value, task["prompt"]):
                fixed[argument] = suite.value(value)
            else:
                missing.append(argument)
        if not targets:
            # What names nobody and nothing is named by one argument that was typed.
            free = [a for a in verb.get("open", []) if typed(call["args"].get(a), task["prompt"])]
            fixed.update({a: suite.value(call["args"][a]) for a in free[:1]})
            missing += [] if free else ["an argument that was typed"]
        if (name, number_of, effects) in UNASKED:
            missing, fixed = ["the step itself"], {}
        effects += 1
        if missing:
            lacks.append({"step": effects - 1, "verb": call["function"], "lacks": missing})
        if not any(argument in verb.get("target", {}) for argument in missing) and fixed:
            step = {"verb": call["function"], "fix": fixed, "uses": 1}
            same = [known for known in steps if (known["verb"], known["fix"]) == (step["verb"], fixed)]
            if same:
                same[0]["uses"] += 1
            else:
                steps.append(step)
    return steps, lacks


def table(suites, texts=None):
    manifest = tomllib.loads((HERE / "tables/connectors.toml").read_text())
    verbs = {}
    for service in manifest["services"].values():
        for name, verb in service["verbs"].items():
            known = set(verb.get("target", {})) | set(verb.get("open", [])) | set(verb.get("fixed", []))
            verbs[name] = verb | {"named": known | set(verb.get("fields", {}))}
    out = {"package": "agentdojo", "version": "0.1.35", "benchmark": VERSION, "suites": {}}
    for name, published in suites.items():
        used = {call["function"] for task in published["tasks"].values() for call in task["calls"]}
        suite = Suite(verbs)
        assert used <= set(verbs), used - set(verbs)
        tasks = []
        for number_of, task in sorted(published["tasks"].items()):
            task["effects"] = {verb for verb, about in verbs.items() if about["effect"] != "read"}
            note(name, number_of, task)
            category = [c for c, ids in CATEGORY[name].items() if number_of in ids] or ["a"]
            calls = []
            for call in task["calls"]:
                entry = {"verb": call["function"], "args": arguments(suite, call, task["prompt"])}
                calls.append(entry | ({"carries": True} if call["carries"] else {}))
            steps, lacks = plan(suite, name, number_of, task)
            entry = {"id": number_of, "category": category[0], "calls": calls, "plan": steps}
            entry |= {"several": True} if number_of in SEVERAL.get(name, []) else {}
            tasks.append(entry | ({"lacks": lacks} if lacks else {}))
        attacks = []
        for number_of, attack in sorted(published["attacks"].items()):
            calls = attack["calls"]
            if (name, number_of) in DERIVED:
                address = re.findall(r"[\w.-]+@[\w.-]+\w", attack["goal"])
                own = "emma.johnson@bluesparrowtech.com"
                def fill(value):
                    return {"@": (address or [own])[0], "own": own}.get(value, value) if isinstance(value, str) else (
                        [fill(item) for item in value] if isinstance(value, list) else value)
                calls = [{"function": verb, "args": {k: fill(v) for k, v in args.items()}}
                         for verb, args in DERIVED[name, number_of]]
            calls = [{"verb": call["function"], "args": arguments(suite, call, "")}
                     | ({"told": True} if told(suite, call, attack["goal"]) else {})
                     | ({"takes": True} if takes(suite, calls[:place], call, attack["goal"]) else {})
                     for place, call in enumerate(calls)]
            attacks.append({"id": number_of, "first": number_of in FIRST[name], "calls": calls})
        # Last, when all words that are arguments are known.
        for entry, task in zip(tasks, (published["tasks"][entry["id"]] for entry in tasks)):
            entry["prompt"] = suite.prompt(task["prompt"])
        suite.relate()
        if texts is not None:
            prompts = {str(key): task["prompt"] for key, task in published["tasks"].items()}
            texts[name] = {"words": list(suite.words), "prompts": prompts}
        out["suites"][name] = {"words": suite.shapes, "tasks": tasks, "attacks": attacks}
    return out


def from_dump(path):
    dump, out = json.loads(Path(path).read_text()), {}
    for name, suite in dump["suites"].items():
        tasks = {}
        for task, about in suite["user_tasks"].items():
            calls = [{"function": call["function"], "args": call["args"],
                      "carries": bool(call["vectors_in_output"])} for call in about["calls"]]
            tasks[int(task.rsplit("_", 1)[1])] = {"prompt": about["prompt"], "calls": calls}
        attacks = {int(task.rsplit("_", 1)[1]): {"goal": about["goal"], "calls": about["calls"]}
                   for task, about in suite["injection_tasks"].items()}
        out[name] = {"tasks": tasks, "attacks": attacks}
    return out


def from_package():
    try:
        from agentdojo.functions_runtime import FunctionsRuntime
        from agentdojo.task_suite.load_suites import get_suites
    except ImportError as why:
        sys.exit(f"the package is not here: {why}\ninstall it with `pip install agentdojo==0.1.35`, or give a dump with `--from`")
    out = {}
    clock = tomllib.loads((HERE / "tables/connectors.toml").read_text())["clock"]
    for name, suite in get_suites(VERSION).items():
        if name in clock:
            account = suite.load_and_inject_default_environment({}).bank_account
            last = max(payment.date for payment in account.transactions)
            if last != clock[name]:
                sys.exit(f"tables/connectors.toml: the clock of {name} shows {clock[name]}; its last payment was on {last}")
        marks = {vector: f"\u2e28{vector}\u2e29" for vector in suite.get_injection_vector_defaults()}

        def world(injections, suite=suite):
            return suite.load_and_inject_default_environment(injections)

        def records(task, suite=suite, world=world):
            def of(call):
                environment = task.init_environment(world({}))
                reply, _ = FunctionsRuntime(suite.tools).run_function(environment, call["function"], call["args"])
                return [item.model_dump(mode="json") if hasattr(item, "model_dump") else {"name": item} for item in reply]
            return of

        tasks, attacks = {}, {}
        for key, task in suite.user_tasks.items():
            clean, marked = task.init_environment(world({})), task.init_environment(world(marks))
            runtime, calls = FunctionsRuntime(suite.tools), []
            for call in task.ground_truth(clean):
                runtime.run_function(clean, call.function, call.args)
                reply, _ = runtime.run_function(marked, call.function, call.args)
                calls.append({"function": call.function, "args": dict(call.args),
                              "carries": any(mark in repr(reply) for mark in marks.values())})
            tasks[int(key.rsplit("_", 1)[1])] = {"prompt": task.PROMPT, "calls": calls, "records": records(task)}
        for key, task in suite.injection_tasks.items():
            calls = [{"function": call.function, "args": dict(call.args)} for call in task.ground_truth(world({}))]
            attacks[int(key.rsplit("_", 1)[1])] = {"goal": task.GOAL, "calls": calls}
        out[name] = {"tasks": tasks, "attacks": attacks}
    return out


def bare(value):
    """A table without what a dump does not hold: replies, and the numbers of words that stand in them alone."""
    value = json.loads(json.dumps(value))
    for suite in value["suites"].values():
        for task in suite["tasks"]:
            for step in task["plan"]:
                for fixed in step["fix"].values():
                    if isinstance(fixed, dict):
                        fixed.get("select", {}).pop("records", None)
        text, order = json.dumps([suite["tasks"], suite["attacks"]]), {}
        text = re.sub(r"\{(\d+)([cu]?)\}", lambda word: "{%s%s}" % (
            order.setdefault(word[1], len(order)), word[2]), text)
        shapes = [re.sub(r"\{(\d+)\}", lambda word: suite["words"][int(word[1])], suite["words"][int(word)]) for word in order]
        suite.clear()
        suite["all"] = [json.loads(text), shapes]
    return value


def main():
    options = argparse.ArgumentParser(description="derives tables/agentdojo.json")
    options.add_argument("--from", dest="dump", metavar="FILE")
    options.add_argument("--check", metavar="TABLE")
    options.add_argument("--text", metavar="FILE")
    given = options.parse_args()
    suites = from_dump(given.dump) if given.dump else from_package()
    if given.text:
        texts = {}
        table(suites, texts)
        Path(given.text).write_text(json.dumps(texts, indent=1))
        return
    derived = table(suites)
    if not given.check:
        print(written(derived))
        return
    shipped = json.loads(Path(given.check).read_text())
    same = bare(shipped) == bare(derived) if given.dump else shipped == derived
    if not same:
        sys.exit(f"{given.check} is not what is derived; write it anew with `derive_agentdojo.py > {given.check}`")
    print("the table is what is derived")


def written(value):
    """One task or attack a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r'(?<=[\[,])(\{"id":|\{"words":|"tasks":|"attacks":)', r"\n\1", text)


if __name__ == "__main__":
    main()
