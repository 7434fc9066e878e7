"""An MCP server of the standard library alone, which starts quickly: run it with the options below.

--begun FILE creates FILE as it starts; --after FILES answers nothing before these exist; --log FILE gets a line for
each message; --broken ends at once with a message on stderr; --chatty logs each call, on stderr and by a message;
--growing has a tool that replaces itself by another one.
"""

import argparse
import base64
import json
import os
import sys
import time

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 32).decode()


def tool(name: str, description: str, **arguments: str) -> dict:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in arguments.items()}}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [
    tool("echo", "Say it again. With a longer explanation that only a look-up shows.", text="string"),
    tool("long", "Print many lines.", lines="integer"),
    tool("line", "Return one long line.", size="integer"),
    tool("draw", "Return a picture and one that is none."),
    tool("environment", "Return a variable.", variable="string"),
    tool("die", "End the server."),
    tool("sleep", "Take long.", seconds="number"),
    tool("fail", "Report an error."),
    tool("write", "Write a file of the workspace.", path="string"),
    tool("no name\nat all", "Has a name that no rule could hold."),
]


GROW, GROWN = tool("grow", "Replace itself by another tool."), tool("grown", "Has just joined.")


def text(content: str) -> dict:
    return {"content": [{"type": "text", "text": content}]}


def call(name: str, arguments: dict) -> dict:
    match name:
        case "echo":
            return text(arguments["text"])
        case "long":
            return text("\n".join(f"line {number}" for number in range(arguments["lines"])))
        case "line":
            return text("x" * arguments["size"])
        case "draw":
            pictures = [{"type": "image", "data": data, "mimeType": "image/png"} for data in (PNG, "AAAA")]
            return {"content": [{"type": "text", "text": "a picture"}, *pictures]}
        case "environment":
            return text(os.environ.get(arguments["variable"], "(unset)"))
        case "sleep":
            time.sleep(arguments["seconds"])
            return text("slept")
        case "fail":
            return {**text("it did not work"), "isError": True}
        case "write":
            with open(arguments["path"], "w") as file:
                file.write("by a server\n")
            return text("written")
        case "grow":
            TOOLS[TOOLS.index(GROW)] = GROWN
            sys.stdout.write('{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n')
            return text("grown")
        case _:
            os.write(2, b"a last word\n")
            os._exit(3)


def answer(request: dict) -> dict | None:
    match request.get("method"):
        case "initialize":
            info = {"name": "small", "version": "1"}
            version = request["params"]["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return call(request["params"]["name"], request["params"].get("arguments") or {})
        case _:
            return None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--begun")
    parser.add_argument("--after", nargs="*", default=[])
    parser.add_argument("--log")
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--chatty", action="store_true")
    parser.add_argument("--growing", action="store_true")
    options = parser.parse_args()
    if options.begun:
        open(options.begun, "w").close()
    if options.growing:
        TOOLS.append(GROW)
    if options.broken:
        sys.exit("the configuration is missing")
    while not all(map(os.path.exists, options.after)):
        time.sleep(0.01)
    os.write(1, b"this line is no message\n")
    for line in sys.stdin:
        request = json.loads(line)
        if options.log:
            with open(options.log, "a") as log:
                log.write(f"{request.get('method')}\n")
        if options.chatty and request.get("method") == "tools/call":
            arguments = request["params"]["arguments"]
            os.write(2, f"\x1b]0;title\x07called with {arguments}\n".encode())
            params = {"level": "warning", "logger": "small", "data": arguments}
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params}) + "\n")
        if "id" in request:
            result = answer(request)
            error = {"error": {"code": -32601, "message": "unknown"}}
            reply = error if result is None else {"result": result}
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
