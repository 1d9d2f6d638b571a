import { parseArgs } from "node:util";
import { describeMachine } from "./machine.ts";
import { residentMb } from "./process/proc-stat.ts";
import { serveGateway } from "./process/serve-gateway.ts";
import { median } from "./results.ts";
import { reportPictures, serveRelay } from "./media/pictures.ts";
import { chatMs, slowLine, speechOf, startMediaUpstream, upload, wavOf } from "./media/traffic.ts";

/** Resident megabytes that all the uploads or all the streams may take. */
const barMb = 400;
/** Megabytes of a file over a slow line. */
const slowMb = 2;

const { values: options } = parseArgs({
  options: {
    uploads: { type: "string", default: "200" },
    mb: { type: "string", default: "25" },
    streams: { type: "string", default: "200" },
    serve: { type: "string" },
    relay: { type: "string" },
  },
});

/** The gateway, in a process of its own. */
const serve = (upstream: string): Promise<void> =>
  serveGateway({
    base_url: upstream,
    dialect: {
      chat: "openai-chat",
      transcriptions: "openai-audio",
      speech: "openai-audio",
    },
    models: [
      {
        id: "bench/chat",
        context_length: 8_192,
        pricing: { prompt: "1", completion: "1", image_output: "1" },
      },
      {
        id: "bench/listen",
        surface: "transcriptions",
        pricing: { audio_input_minute: "0.006" },
      },
      { id: "bench/speak", surface: "speech", pricing: { characters: "15" } },
    ],
  });

/** Sets the peak of a process's resident memory back (proc(5), clear_refs). */
const forgetPeak = (pid: number): Promise<number> => Bun.write(`/proc/${pid}/clear_refs`, "5");

interface Measured {
  origin: string;
  pid: number;
}

/** Runs work beside chat and reports both. Returns the peak in megabytes. */
async function report(
  { origin, pid }: Measured,
  { what, work }: { what: string; work: () => Promise<unknown> },
): Promise<number> {
  await forgetPeak(pid);
  let isOver = false;
  const startedMs = performance.now();
  const besideMs: number[] = [];
  const chat = async (): Promise<void> => {
    while (!isOver) {
      besideMs.push(await chatMs(origin));
      // A key may send 2,400 requests in a minute.
      await Bun.sleep(30);
    }
  };
  const [, chatted] = [
    await Promise.all([
      work().finally(() => {
        isOver = true;
      }),
      chat(),
    ]),
    median(besideMs),
  ];
  const peakMb = residentMb(pid, "VmHWM");
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(
    `${what}: ${peakMb} MB at most, ${seconds} s; chat beside it ${chatted.toFixed(1)} ms (median of ${besideMs.length})`,
  );
  return peakMb;
}

async function measure(): Promise<void> {
  const upstream = startMediaUpstream();
  const child = Bun.spawn([process.execPath, import.meta.path, "--serve", upstream.url], {
    stdout: "pipe",
    stderr: "inherit",
  });
  try {
    const printed = (await child.stdout.getReader().read()).value;
    const measured = { origin: new TextDecoder().decode(printed).trim(), pid: child.pid };
    const { origin } = measured;
    const { cpu, cores, bun, commit } = describeMachine(".");
    console.log(`${cpu}, ${cores} cores, Bun ${bun}, commit ${commit}`);
    const alone: number[] = [];
    for (let index = 0; index < 100; index += 1) alone.push(await chatMs(origin));
    console.log(
      `at rest: ${residentMb(child.pid, "VmRSS")} MB; chat ${median(alone).toFixed(1)} ms`,
    );
    const sound = wavOf(Number(options.mb) * 1024 * 1024);
    const times = (count: string): number[] => Array.from({ length: Number(count) }, (_, at) => at);
    const small = wavOf(slowMb * 1024 * 1024);
    const peaks = [
      await report(measured, {
        what: `${options.uploads} transcriptions of ${slowMb} MB over slow lines`,
        work: () => Promise.all(times(options.uploads).map(() => upload(origin, small, slowLine))),
      }),
      await report(measured, { what: "nothing", work: () => Bun.sleep(10_000) }),
      await report(measured, {
        what: `${options.uploads} transcriptions of ${options.mb} MB`,
        work: () => Promise.all(times(options.uploads).map(() => upload(origin, sound))),
      }),
      await report(measured, {
        what: `${options.streams} streams of speech`,
        work: () => Promise.all(times(options.streams).map(() => speechOf(origin))),
      }),
    ];
    const relay = Bun.spawn([process.execPath, import.meta.path, "--relay", upstream.url], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const relayed = (await relay.stdout.getReader().read()).value;
    const url = new TextDecoder().decode(relayed).trim();
    if (!(await reportPictures(measured, { url, pid: relay.pid }))) process.exitCode = 1;
    relay.kill();
    await relay.exited;
    if (Math.max(...peaks) > barMb) {
      console.error(`above ${barMb} MB`);
      process.exitCode = 1;
    }
  } finally {
    child.kill();
    await child.exited;
    upstream.stop();
  }
}

if (options.relay !== undefined) serveRelay(options.relay);
else if (options.serve !== undefined) await serve(options.serve);
else await measure();
