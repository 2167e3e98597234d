"""What the web framework does when it has nothing to do: `python -m tests.bench.echo` prints its port."""

from __future__ import annotations

import socket
from typing import Any

import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart, request

app = Quart(__name__)


@app.post("/echo")
async def echo() -> Any:
    return await request.get_json()


async def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    print(listening.getsockname()[1], flush=True)
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]
    config.keep_alive_max_requests = 10_000_000
    config.errorlog = None
    await serve(app, config)  # type: ignore[arg-type, unused-ignore]


if __name__ == "__main__":
    uvloop.run(main())
