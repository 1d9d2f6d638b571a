import { sql } from "kysely";
import type { TestGateway } from "../../../support/gateway.ts";

const refuse = sql`
  create trigger refuse before insert on generations
  begin select raise(abort, 'refused'); end`;

/**
 * Does something while the database refuses every settlement. The log reports each refusal, as it
 * must; it is cleared, so that the books can be checked afterwards.
 */
export async function whileRefusing<T>(
  { app, logLines }: TestGateway,
  work: () => Promise<T>,
): Promise<T> {
  await refuse.execute(app.storage.database);
  try {
    return await work();
  } finally {
    await sql`drop trigger refuse`.execute(app.storage.database);
    logLines.splice(0);
  }
}
