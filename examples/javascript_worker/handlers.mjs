// Handlers, and the process around a worker: node examples/javascript_worker/handlers.mjs (ORBIT_URL, ORBIT_TOKEN)
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { work } from "./worker.mjs";

// One version of a handler has one set of types: the digest says which. Any 64 hex digits that change with them will do.
const types = (text) => createHash("sha256").update(text).digest("hex");

const handlers = {
  "letter.fold@1": {
    recovery: "IDEMPOTENT",
    digest: types("{ sheets: integer } => { folds: integer }"),
    run: async (ctx, { sheets }) => ({ folds: sheets * 2 }),
  },
  // Nothing is declared to be safe: it is started in two steps and never repeated without a person.
  "letter.post@1": {
    recovery: "CONSERVATIVE",
    digest: types("{ to: string } => { receipt: string }"),
    run: async (ctx, { to }) => ({ receipt: `${to}:${ctx.effect_key.slice(0, 8)}` }),
  },
  "letter.dry@1": {
    recovery: "IDEMPOTENT",
    digest: types("{ ms: integer } => string"),
    run: async (ctx, { ms }) => {
      for (let left = ms; left > 0; left -= 50) {
        if (ctx.signal.aborted) throw ctx.signal.reason;
        ctx.progress({ left });
        await sleep(50);
      }
      return "dry";
    },
  },
};

const { ORBIT_URL: url, ORBIT_TOKEN: token } = process.env;
const worker = work({ url, token, name: "javascript", build: "1", queues: ["letters"], handlers, slots: 4 });
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, worker.stop);
worker.done.then(
  () => process.exit(0),
  (error) => { console.error(error.message); process.exit(1); },
);
