import type { HttpServer } from "../../http/http-server.ts";
import { secondsToExpiry, type TlsPair } from "../../platform/config/tls-files.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";

/** The certificate that a server shows to new connections. */
export class ServedCertificate {
  private readonly server: Pick<HttpServer, "renewCertificate">;
  private readonly logger: Logger;

  constructor(
    private pair: TlsPair,
    { server, logger }: { server: Pick<HttpServer, "renewCertificate">; logger: Logger },
  ) {
    this.server = server;
    this.logger = logger;
  }

  /** Serves another certificate, where it is another one. */
  renew(pair: TlsPair): void {
    if (pair.cert === this.pair.cert && pair.key === this.pair.key) return;
    this.server.renewCertificate(pair);
    this.pair = pair;
    this.logger.info({}, "new connections get the renewed certificate");
  }

  /** Returns the seconds until the certificate expires; below 0 once it has. */
  secondsLeft(nowMs: number): number {
    return secondsToExpiry(this.pair, nowMs);
  }
}
