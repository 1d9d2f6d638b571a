import { afterAll, expect, test } from "bun:test";
import { testManagementKey } from "../../support/gateway.ts";
import { endProcesses, startProcess } from "../../support/process.ts";
import { runCommand } from "../command/run-command.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { type OpenedStore, stores } from "./support/stores.ts";

afterAll(endProcesses);

const doctor = ({ options }: OpenedStore) => runCommand(["doctor", "--offline"], options);

const engines = stores.map(({ name, open }) => [name, open] as const);

test.each(engines)(
  "the doctor accepts an intact audit log on %s and detects removed and changed rows",
  async (name, open) => {
    const store = await open();
    for (let start = 0; start < 2; start += 1) {
      const gateway = await startProcess({
        ...store.options,
        environment: { ...bootstrapVariables, ...store.options.environment },
      });
      const made = await Promise.all(
        Array.from({ length: 10 }, (_, ordinal) =>
          fetch(`${gateway.url}/api/v1/keys`, {
            method: "POST",
            headers: { authorization: `Bearer ${testManagementKey}` },
            body: JSON.stringify({ name: `key ${ordinal}` }),
          }),
        ),
      );
      expect(made.map(({ status }) => status)).toEqual(made.map(() => 200));
      expect(await doctor(store)).toMatchObject({ exitCode: 0, stderr: "" });
      await gateway.terminate();
    }
    const off =
      name === "SQLite"
        ? ["drop trigger audit_log_refuses_update", "drop trigger audit_log_refuses_delete"]
        : ["drop trigger audit_log_refuses_change on audit_log"];
    for (const statement of off) await store.query(statement);
    const tampered = async (change: string, shows: string): Promise<void> => {
      await store.query(change);
      const { exitCode, stderr } = await doctor(store);
      expect([exitCode, stderr.includes(shows)]).toEqual([1, true]);
    };
    await tampered(
      "update audit_log set address = '192.0.2.1' where id = (select max(id) from audit_log)",
      "was changed",
    );
    await tampered(
      "delete from audit_log where id = (select max(id) from audit_log)",
      "was deleted",
    );
    await tampered(
      "delete from audit_chain where chain = (select chain from audit_chain where anchors = '[]')",
      "is missing",
    );
    await tampered(
      "update ledger_accounts set balance_nano = balance_nano + 1 where id = 'operator:payments'",
      "add up to",
    );
  },
  240_000,
);
