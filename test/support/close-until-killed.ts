/**
 * Closes the months of a ledger in small batches, and kills itself like `kill -9` before one of its
 * statements. Arguments: the database, the wall time in milliseconds, and the number of that
 * statement.
 */
import type { KyselyPlugin } from "kysely";
import { ClosedMonths } from "../../src/billing/ledger/closed/closed-months.ts";
import { closingKey, openClosedLedger } from "./closed-ledger.ts";

const [url = "", nowMs, statement] = process.argv.slice(2);
const { database } = await openClosedLedger(url);
let count = 0;
const dying: KyselyPlugin = {
  transformQuery({ node }) {
    count += 1;
    if (count === Number(statement)) process.kill(process.pid, "SIGKILL");
    return node;
  },
  transformResult: async ({ result }) => result,
};
const months = new ClosedMonths({
  database: database.withPlugin(dying),
  encryptionKey: closingKey,
  batchRows: 3,
});
await months.closeDue(Number(nowMs));
process.exit();
