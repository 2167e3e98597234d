// A worker for Orbit in plain JavaScript (Node 18 or newer, no packages), after docs/reference/worker-protocol.md.
// Left out: marks, verification and progress time-outs: declare READ_ONLY, IDEMPOTENT or CONSERVATIVE handlers.
// Handlers share the thread that renews their leases: they must await, never block.
import { randomBytes } from "node:crypto";
import { connect } from "./websocket.mjs";

const now = () => performance.now(); // milliseconds of a clock that never steps
const keyOf = (offer) => `${offer.handler}@${offer.handler_version}`;

/** Run `handlers` ({ "name@1": { recovery, digest, run: async (ctx, parameters) => result } }) until `stop()`.
 *  `done` resolves when everything is settled and said; it rejects when the server will never take this worker. */
export function work({ url, token, name, queues, handlers, slots = 4, build = "" }) {
  const nonce = randomBytes(16).toString("hex"); // of this process, over all its connections
  const [held, over, sent] = [new Map(), new Set(), new Map()];
  let [socket, welcome, ended] = []; // the socket is here from its welcome to its end
  let [number, seen, failures, heardAt, beatAt, renewAt, stopping] = [0, 0, 0, 0, 0, 0, false];

  const later = (job) => setTimeout(job, 2 * (welcome?.lease_ms ?? 30_000)).unref();
  const say = (type, more) => socket?.send({ type, ...more });
  const ask = (type, more) => {
    const mine = ++number;
    sent.set(mine, now()); // leases count from when their request left
    later(() => sent.delete(mine));
    say(type, { number: mine, ...more });
  };
  const endOf = (request, lease) => (sent.get(request) ?? -Infinity) + lease - Math.min(1_000, lease / 10);
  const claim = ({ offer }) => ({ attempt_id: offer.attempt_id, generation: offer.generation });
  const free = () => slots - [...held.values()].filter((one) => !one.result).length;
  const ready = () => ask("ready", { slots: stopping ? 0 : Math.max(free(), 0), seen });
  const forget = (id) => held.delete(id) && over.add(id) && later(() => over.delete(id));
  const each = (items, job) =>
    items.forEach((item) => held.has(item.attempt_id) && job(held.get(item.attempt_id), item));
  const lose = (one) => one.running && one.abort.abort((one.lost = "lost"));
  const tell = (one, outcome, more) => {
    one.result = { ...claim(one), task_id: one.offer.task_id, outcome, ...more };
    ready(); // before the result that freed the slot
    say("result", { items: [one.result] });
  };

  async function run(one, end) {
    Object.assign(one, { end, running: true, abort: new AbortController() });
    const progress = (value) => say("progress", { items: [{ ...claim(one), value }] });
    const ctx = { ...one.offer, signal: one.abort.signal, progress, stopping: () => stopping };
    let said;
    try {
      const result = (await handlers[keyOf(one.offer)].run(ctx, one.offer.parameters)) ?? null;
      const size = Buffer.byteLength(JSON.stringify(result));
      said = size > 262_144 ? ["INVALID_RESULT", { message: "too large", size }] : ["SUCCEEDED", { result }];
    } catch (error) { // a handler that obeyed throws `signal.reason`; its own errors may say outcome, code and effect
      const { outcome = "EXCEPTION", code, effect } = error?.outcome ? error : {};
      said = error === "cancelled" ? ["CANCELLED"] : [outcome, { code, effect, message: `${error}`.slice(0, 4_000) }];
    }
    one.running = false;
    if (!one.lost) return tell(one, ...said);
    forget(one.offer.attempt_id);
    ready();
  }

  const frames = {
    welcome(frame) {
      [welcome, failures, seen, renewAt] = [frame, 0, 0, 0]; // renewAt: say at once what is here, results too
      (frame.refused ?? []).forEach((one) => console.error(`refused: ${one.kind} ${one.name}: ${one.reason}`));
      each(frame.in_flight ?? [], (one, { attempt_id: id, answer, lease_ms }) => {
        const asked = !one.running && !one.result;
        if (answer === "CONTINUE" && asked) run(one, endOf("hello", lease_ms));
        else if (answer === "CONTINUE") one.end = endOf("hello", lease_ms);
        else if (answer === "SETTLED" || asked) forget(id);
        else lose(one);
      });
      if (stopping) say("drain");
    },
    offer({ items }) {
      seen += items.length;
      const asks = [];
      for (const offer of items.filter(({ attempt_id: id }) => !held.has(id) && !over.has(id))) {
        const fits = free() > 0 && !stopping && offer.kind !== "VERIFY" && keyOf(offer) in handlers;
        const one = { offer, end: offer.started ? endOf(offer.ready, offer.lease_ms) : now() + welcome.lease_ms };
        held.set(offer.attempt_id, one);
        if (one.end <= now() || !fits) tell(one, fits ? "DISCARDED" : "HAND_BACK");
        else if (offer.started) run(one, one.end);
        else asks.push(claim(one));
      }
      if (asks.length) ask("start", { items: asks });
    },
    started: ({ number: request, items }) => each(items, (one, { lease_ms }) => run(one, endOf(request, lease_ms))),
    withdrawn: ({ items }) => each(items, (one) => forget(one.offer.attempt_id)) ?? ready(),
    renewed: ({ number: request, items }) =>
      each(items, (one, { lease_ms }) => (one.end = Math.max(one.end, endOf(request, lease_ms)))),
    lost: ({ items }) => each(items, lose),
    cancel: ({ items }) => each(items, (one) => one.abort?.abort("cancelled")),
    settled: ({ items }) => each(items, (one) => forget(one.offer.attempt_id)),
    error: ({ code, message }) => console.error(`the server refused: ${code} ${message}`),
  };

  function dial() {
    let made;
    const open = (opened) => {
      [made, heardAt] = [opened, now()];
      sent.set("hello", heardAt);
      const offers = Object.entries(handlers).map(([key, { recovery, digest }]) => (
        { name: key.split("@")[0], version: Number(key.split("@")[1]), recovery, digest }));
      const stateOf = (one) => (one.result ? "FINISHED" : one.running ? "RUNNING" : "ASKED");
      const flying = [...held.values()].map((one) => (
        { ...claim(one), task_id: one.offer.task_id, state: stateOf(one) }));
      made.send({ type: "hello", nonce, worker: name, build, handlers: offers, queues, slots, in_flight: flying });
    };
    const message = (text) => {
      const frame = JSON.parse(text);
      heardAt = now();
      if (frame.type === "welcome") socket = made;
      frames[frame.type]?.(frame);
    };
    const closed = (status) => {
      socket = undefined;
      if (status === 401 || status === 403) return ended.reject(new Error(`HTTP ${status}: look at the token`));
      if (stopping && !held.size) return ended.resolve();
      setTimeout(dial, Math.random() * Math.min(15_000, 1_000 * 2 ** failures++));
    };
    connect(url, token, { open, message, closed });
  }

  function tick() {
    for (const [id, one] of held) if (one.end <= now() && !one.result) one.running ? lose(one) : forget(id);
    if (socket && (now() - heardAt > welcome.silence_ms || (stopping && !held.size))) return socket.close();
    if (socket && now() >= beatAt) (beatAt = now() + welcome.heartbeat_ms), ask("beat");
    if (!socket || now() < renewAt) return;
    renewAt = now() + welcome.lease_ms / 3;
    ready();
    const mine = [...held.values()].filter((one) => (one.running && !one.lost) || one.result);
    if (mine.length) ask("renew", { items: mine.map(claim) });
    mine.forEach(({ result }) => result && say("result", { items: [result] }));
  }

  const timer = setInterval(tick, 50);
  const done = new Promise((resolve, reject) => (ended = { resolve, reject })).finally(() => clearInterval(timer));
  dial();
  return { done, stop: () => { stopping = true; say("drain"); } };
}
