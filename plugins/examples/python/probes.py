"""The tools by which "agentctl plugin test" tries what it cannot see from outside.

They are served only to that command.
"""

import json
import subprocess

from toolserver import Tool


def wait(call, args):
    call.output("begun\n")
    call.wait(args["ms"] / 1000)
    return "rested"


def flood(call, args):
    line, left = "0123456789abcde\n" * 2048, args["bytes"]
    while left > 0:
        call.output(line[:left])
        left -= len(line)


def fails(_call, _args):
    raise RuntimeError("this is a probe")


def prints(_call, args):
    print(args["text"], flush=True)
    subprocess.run(["cat"], input=args["text"] + "\n", text=True, check=True)
    return "printed"


def environ(_call, _args):
    return json.dumps(subprocess.check_output(["env"], text=True).strip().split("\n"))


def stdin(_call, _args):
    with open(0, "rb", closefd=False) as f:
        return str(len(f.read()))


def spawn(_call, _args):
    return str(subprocess.Popen(["sleep", "300"]).pid)


def tool(name, run, **fields):
    parameters = {
        "type": "object",
        "properties": {field: {"type": kind} for field, kind in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }
    return Tool("probe_" + name, "A probe.", parameters, run)


TOOLS = (
    tool("echo", lambda _call, args: args["text"], text="string"),
    tool("wait", wait, ms="integer"),
    tool("flood", flood, bytes="integer"),
    tool("panic", fails),
    tool("print", prints, text="string"),
    tool("environ", environ),
    tool("stdin", stdin),
    tool("spawn", spawn),
    tool("ask", lambda call, args: call.ask(args["text"]), text="string"),
)
