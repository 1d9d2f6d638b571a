import { hourMs, minuteMs } from "../clock.ts";

/**
 * Does work every hour, for the first time after a minute, so that no start is slowed and gateways
 * that are restarted often do it too. Returns a function that ends it.
 */
export function hourly(work: () => void): () => void {
  let timer = setTimeout(() => {
    work();
    timer = setInterval(work, hourMs);
  }, minuteMs);
  return () => clearInterval(timer);
}
