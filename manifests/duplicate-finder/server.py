#!/usr/bin/env python3
"""A small MCP server for the tickets in tickets.json. Replace it by that of your tracker."""
import json
import sys

ID = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"], "additionalProperties": False}
QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"], "additionalProperties": False}
TOOLS = [
    {"name": "search_tickets", "description": "Lists the tickets that have a word in their title or text.", "inputSchema": QUERY, "annotations": {"readOnlyHint": True}},
    {"name": "get_ticket", "description": "Returns a ticket.", "inputSchema": ID, "annotations": {"readOnlyHint": True}},
    {"name": "close_ticket", "description": "Closes a ticket.", "inputSchema": ID, "annotations": {"destructiveHint": True}},
]


def tickets():
    with open("tickets.json", encoding="utf-8") as f:
        return json.load(f)


def search_tickets(query):
    word = query.lower()
    return [{"id": t["id"], "title": t["title"]} for t in tickets() if word in (t["title"] + t["text"]).lower()]


def get_ticket(id):
    return next(t for t in tickets() if t["id"] == id)


def close_ticket(id):
    changed = [dict(t, state="closed") if t["id"] == id else t for t in tickets()]
    with open("tickets.json", "w", encoding="utf-8") as f:
        json.dump(changed, f)
    return "closed"


CALLS = {"search_tickets": search_tickets, "get_ticket": get_ticket, "close_ticket": close_ticket}


def call(params):
    try:
        text, failed = json.dumps(CALLS[params["name"]](**params.get("arguments", {}))), False
    except StopIteration:
        text, failed = "there is no such ticket", True
    except (KeyError, TypeError, OSError, ValueError) as e:
        text, failed = f"{type(e).__name__}: {e}", True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


ANSWERS = {
    "initialize": lambda _: {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "tickets", "version": "1"}},
    "ping": lambda _: {},
    "tools/list": lambda _: {"tools": TOOLS},
    "tools/call": call,
}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue  # a notification
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    answer = ANSWERS.get(request["method"])
    if answer:
        reply["result"] = answer(request.get("params", {}))
    else:
        reply["error"] = {"code": -32601, "message": "method not found"}
    print(json.dumps(reply), flush=True)
