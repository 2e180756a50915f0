// The driver of graphile-worker: node graphile_worker.js FOLDER COMMAND ARGUMENTS, see ../base.py and ../../marks.py.

const fs = require("fs");
const path = require("path");

const [folder, command, ...rest] = process.argv.slice(2);
const installed = (name) => require(path.join(path.resolve(folder), "node_modules", name));
const { run, runMigrations, makeWorkerUtils, Logger } = installed("graphile-worker");
const { Pool } = installed("pg");

const URL = process.env.DATABASE_URL;
const CHUNK = 5000;
const SETTINGS = {
  defaults: {},
  best: {
    concurrentJobs: 24,
    maxPoolSize: 26,
    localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
}[process.env.BENCHMARK_CONFIGURATION || "best"];
const quiet = new Logger(() => () => {});
const now = () => (performance.timeOrigin + performance.now()) / 1000;

// --- the marks, as in marks.py

const HEADER = 64;
let file = null;
let waitsAt = 0;

function openMarks() {
  file = fs.openSync(process.env.BENCHMARK_MARKS, "r+");
  const header = Buffer.alloc(HEADER);
  fs.readSync(file, header, 0, HEADER, 0);
  waitsAt = Math.floor((HEADER + Number(header.readBigInt64LE(16)) + 7) / 8) * 8;
  if (header.readDoubleLE(0) === 0) writeDouble(now(), 0);
  const process_ = Buffer.alloc(8);
  process_.writeBigInt64LE(BigInt(process.pid));
  fs.writeSync(file, process_, 0, 8, 8);
}

function writeDouble(value, place) {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  fs.writeSync(file, bytes, 0, 8, place);
}

const ran = Buffer.alloc(1);

function mark(job) {
  if (file === null) openMarks();
  fs.readSync(file, ran, 0, 1, HEADER + job);
  ran[0] = Math.min(ran[0] + 1, 255);
  fs.writeSync(file, ran, 0, 1, HEADER + job);
}

function wait(job, since) {
  const seconds = now() - since;
  if (file === null) openMarks();
  writeDouble(seconds, waitsAt + 8 * job);
  mark(job);
}

// --- the commands

async function timed(action) {
  const began = now();
  await action();
  return { seconds: now() - began };
}

const addJob = (utils, job) => utils.addJob("nothing", { job });

async function addMany(utils, jobs) {
  for (let first = 0; first < jobs; first += CHUNK) {
    const numbers = Array.from({ length: Math.min(CHUNK, jobs - first) }, (_, index) => first + index);
    await utils.addJobs(numbers.map((job) => ({ identifier: "nothing", payload: { job } })));
  }
}

async function addOneByOne(utils, jobs) {
  for (let job = 0; job < jobs; job++) await addJob(utils, job);
}

async function probe(utils, jobs, interval) {
  for (let job = 0; job < jobs; job++) {
    const since = now();
    await utils.addJob("probe", { job, since });
    await new Promise((done) => setTimeout(done, Math.max(0, (interval - (now() - since)) * 1000)));
  }
}

async function withUtils(action) {
  const pool = new Pool({ connectionString: URL, max: 4 });
  const utils = await makeWorkerUtils({ pgPool: pool, logger: quiet });
  await pool.query("SELECT 1");
  return await action(utils);
}

const COMMANDS = {
  setup: () => runMigrations({ connectionString: URL, logger: quiet }),
  preload: (jobs) => withUtils((utils) => addMany(utils, jobs)),
  enqueue: (jobs) => withUtils((utils) => timed(() => addOneByOne(utils, jobs))),
  "enqueue-many": (jobs) => withUtils((utils) => timed(() => addMany(utils, jobs))),
  probe: (jobs, interval) => withUtils((utils) => probe(utils, jobs, interval)),
  versions: async () => ({ node: process.version.slice(1) }),
  work: async () => {
    const runner = await run({
      preset: { worker: { connectionString: URL, logger: quiet, ...SETTINGS } },
      taskList: {
        nothing: async ({ job }) => mark(job),
        probe: async ({ job, since }) => wait(job, since),
      },
    });
    await runner.promise;
  },
};

COMMANDS[command](...rest.map(Number))
  .then((answer) => {
    if (answer) console.log(JSON.stringify(answer));
    process.exit(0);
  })
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
