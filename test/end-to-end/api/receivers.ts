import { createHmac } from "node:crypto";
import type { Socket } from "bun";

/** A mail that arrived. */
export interface ReceivedMail {
  from: string;
  to: string;
  /** Headers and text, as they were sent. */
  text: string;
}

/** A mail server on loopback that takes every mail. */
export interface MailServer {
  url: string;
  mails: ReceivedMail[];
  stop(): void;
}

/** The link in a mail; quoted-printable breaks long lines. */
export const linkIn = ({ text }: ReceivedMail): string =>
  /https?:\/\/\S+/.exec(text.replace(/=\r\n/g, "").replaceAll("=3D", "="))?.[0] ?? "";

interface Session {
  buffer: string;
  inData: boolean;
  mail: ReceivedMail;
}

const blank = (): ReceivedMail => ({ from: "", to: "", text: "" });
const addressIn = (line: string): string => /<([^>]*)>/.exec(line)?.[1] ?? "";

/** Answers one line of SMTP (RFC 5321). */
function answer(line: string, session: Session): string {
  const verb = line.slice(0, 4).toUpperCase();
  if (verb === "EHLO" || verb === "HELO") return "250 mail.test\r\n";
  if (verb === "MAIL") session.mail.from = addressIn(line);
  if (verb === "RCPT") session.mail.to = addressIn(line);
  if (verb === "QUIT") return "221 bye\r\n";
  if (verb !== "DATA") return "250 ok\r\n";
  session.inData = true;
  return "354 go on\r\n";
}

/** Starts a mail server. */
export function startMailServer(): MailServer {
  const mails: ReceivedMail[] = [];
  const read = (socket: Socket<Session>): void => {
    const session = socket.data;
    for (;;) {
      const end = session.buffer.indexOf(session.inData ? "\r\n.\r\n" : "\r\n");
      if (end < 0) return;
      const part = session.buffer.slice(0, end);
      session.buffer = session.buffer.slice(end + (session.inData ? 5 : 2));
      if (!session.inData) {
        socket.write(answer(part, session));
        continue;
      }
      mails.push({ ...session.mail, text: part });
      Object.assign(session, { inData: false, mail: blank() });
      socket.write("250 taken\r\n");
    }
  };
  const server = Bun.listen<Session>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { buffer: "", inData: false, mail: blank() };
        socket.write("220 mail.test\r\n");
      },
      data(socket, bytes) {
        socket.data.buffer += bytes.toString("latin1");
        read(socket);
      },
    },
  });
  return { url: `smtp://127.0.0.1:${server.port}`, mails, stop: () => server.stop(true) };
}

/** A message that a webhook received. */
export interface ReceivedHook {
  headers: Headers;
  body: string;
}

/** A receiver of webhooks on loopback. */
export interface Webhook {
  url: string;
  hooks: ReceivedHook[];
  /** Status of every answer from now on. */
  answerWith(status: number, headers?: Record<string, string>): void;
  stop(): void;
}

/** Starts a webhook. */
export function startWebhook(): Webhook {
  const hooks: ReceivedHook[] = [];
  let status = 200;
  let headers: Record<string, string> = {};
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      hooks.push({ headers: request.headers, body: await request.text() });
      return new Response("a secret of the network", { status, headers });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/hook`,
    hooks,
    answerWith(next, nextHeaders = {}) {
      status = next;
      headers = nextHeaders;
    },
    stop: () => void server.stop(true),
  };
}

/** Whether a message is signed with a secret, as the documentation says. */
export function isSigned({ headers, body }: ReceivedHook, secret: string): boolean {
  const [, seconds = "", signature = ""] =
    /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers.get("x-service-signature") ?? "") ?? [];
  return createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex") === signature;
}
