/**
 * Starts the Postgres that all processes of `npm test` share, prints the variable with its URL once
 * its migrated database is there, and stops at the end of the input.
 */
import { sharedServerVariable, startSharedPostgres } from "./postgres.ts";

const { url, template } = await startSharedPostgres();
await template();
console.log(`${sharedServerVariable}=${url}`);
await Bun.stdin.text();
process.exit(0);
