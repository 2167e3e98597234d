// The little of a WebSocket that a worker needs. Node 22 brings one; this is for 18 and 20, and without packages.
import { randomBytes } from "node:crypto";
import http from "node:http";
import https from "node:https";

/** `on`: open({ send, close }), message(text), closed(HTTP status, where the server answered with one instead). */
export function connect(address, token, on) {
  const headers = { Connection: "Upgrade", Upgrade: "websocket", Authorization: `Bearer ${token}`,
    "Sec-WebSocket-Key": randomBytes(16).toString("base64"), "Sec-WebSocket-Version": "13" };
  const request = (address.startsWith("https:") ? https : http).get(new URL("/v1/worker", address), { headers });
  request.on("error", () => on.closed());
  request.on("response", (response) => on.closed(response.resume().statusCode));
  request.on("upgrade", (_, stream, head) => {
    const write = (opcode, data) => {
      const long = Buffer.alloc(8);
      long.writeUIntBE(data.length, 2, 6);
      const short = data.length < 126;
      const size = short ? [data.length] : data.length < 65_536 ? [126, ...long.subarray(6)] : [127, ...long];
      const mask = randomBytes(4); // whatever a client sends is masked
      const start = Buffer.from([128 | opcode, 128 | size[0], ...size.slice(1), ...mask]);
      stream.write(Buffer.concat([start, data.map((byte, at) => byte ^ mask[at % 4])]));
    };
    let [bytes, parts] = [Buffer.alloc(0), []];
    const read = (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 2) {
        const short = bytes[1] & 127;
        const [skip, long] = short === 126 ? [4, 2] : short === 127 ? [10, 6] : [2, 0];
        const end = bytes.length < skip ? Infinity : skip + (long ? bytes.readUIntBE(skip - long, long) : short);
        if (bytes.length < end) return;
        const [first, data] = [bytes[0], bytes.subarray(skip, end)];
        bytes = bytes.subarray(end);
        if ((first & 15) === 8) stream.end(); // goodbye
        else if ((first & 15) === 9) write(10, data); // ping
        else if (parts.push(data) && first & 128) on.message(Buffer.concat(parts.splice(0)).toString());
      }
    };
    stream.on("data", read).on("error", () => {}).on("close", () => on.closed());
    on.open({ send: (frame) => write(1, Buffer.from(JSON.stringify(frame))), close: () => stream.destroy() });
    read(head);
  });
}
