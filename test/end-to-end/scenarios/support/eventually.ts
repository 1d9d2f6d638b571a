/** How long a condition may take to come true before the test fails, in milliseconds. */
const patienceMs = 50_000;

/**
 * Resolves in the turn of the event loop in which the condition first holds, for what a gateway
 * does after its client has left and reports to no client. Rejects when it never does.
 */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadlineMs = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`it never came true: ${what}`);
    // A loop without a rest would take a core from what is awaited.
    await Bun.sleep(1);
  }
}
