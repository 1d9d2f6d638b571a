import { expect, test } from "bun:test";
import { memoryLimitBytes } from "./control-group.ts";

const mib = 1024 ** 2;

test.each<[string, Record<string, string>, number | undefined]>([
  ["no control groups", {}, undefined],
  [
    "a container of version 2",
    { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": `${256 * mib}\n` },
    256,
  ],
  [
    "version 2 without a limit",
    { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n" },
    undefined,
  ],
  [
    "a unit of systemd in a slice with less",
    {
      "/proc/self/cgroup": "0::/system.slice/switchyard.service\n",
      "/sys/fs/cgroup/system.slice/switchyard.service/memory.max": `${1024 * mib}\n`,
      "/sys/fs/cgroup/system.slice/memory.max": `${512 * mib}\n`,
    },
    512,
  ],
  [
    "a container of version 1, where the path is the host's",
    {
      "/proc/self/cgroup": "5:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n0::/\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": `${128 * mib}\n`,
    },
    128,
  ],
  [
    "version 1 without a limit",
    {
      "/proc/self/cgroup": "4:memory:/\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    },
    undefined,
  ],
])("%s", (_, files, limitMib) => {
  expect(memoryLimitBytes((path) => files[path])).toBe(
    limitMib === undefined ? undefined : limitMib * mib,
  );
});
