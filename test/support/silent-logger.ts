/** A logger that writes nothing. */
export const silentLogger = {
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
