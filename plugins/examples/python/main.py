"""The tools of this program; toolserver.py serves them."""

from toolserver import Tool, ToolError, serve


def count(call, args):
    text = args["text"]
    if not text.strip():
        raise ToolError("the text is empty")  # the model reads this and mends its call
    for _ in range(args.get("seconds", 0)):
        call.progress("counting")
        call.wait(1)  # ends at once when the call is cancelled
    return f"{len(text.split())} words"


serve(
    Tool(
        name="wordcount",
        description="Counts the words of a text.",
        parameters={
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "the text"},
                "seconds": {"type": "integer", "minimum": 0, "description": "how long to take over it"},
            },
            "required": ["text"],
            "additionalProperties": False,
        },
        run=count,
    ),
)
