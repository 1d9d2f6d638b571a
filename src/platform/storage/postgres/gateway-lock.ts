import type { Client } from "pg";
import { z } from "zod";

/** "switchya" as a 64-bit integer. Advisory locks are private to each database. */
const lockKey = "8320234785195194721";

/**
 * A backend of the server. The start time distinguishes it from a later one with the same process
 * id.
 */
export interface SessionIdentity {
  pid: number;
  startedAt: string;
}

const lockedSchema = z.object({ locked: z.boolean() });
const identitySchema = z.object({ pid: z.number(), startedAt: z.string() });
const pidSchema = z.object({ pid: z.number() });
const holderSchema = z.object({ holder: z.string() });

/** "switchyb": the session that holds it works alone for a moment. */
export const momentLockKey = "8320234785195194722";

/** "switchyc": held by every gateway that takes part in the epoch of the database. */
const memberLockKey = "8320234785195194723";

const countSchema = z.object({ count: z.coerce.number() });

/** Returns how many gateways take part in the epoch of the database. */
export async function countMembers(client: Client): Promise<number> {
  const { rows } = await client.query(
    `select count(*) as count from pg_locks
     where locktype = 'advisory' and granted and objsubid = 1 and (classid::bigint << 32) + objid::bigint = ${memberLockKey}
       and database = (select oid from pg_database where datname = current_database())`,
  );
  return countSchema.parse(rows[0]).count;
}

/** Joins the epoch of the database for as long as this session lives. */
export async function lockMembership(client: Client): Promise<void> {
  await client.query(`select pg_advisory_lock_shared(${memberLockKey})`);
}

/** Tries to make this session the only gateway on the database, for as long as it lives. */
export async function tryGatewayLock(client: Client): Promise<boolean> {
  const { rows } = await client.query(`select pg_try_advisory_lock(${lockKey}) as locked`);
  return lockedSchema.parse(rows[0]).locked;
}

/** Returns whether no gateway uses the database at this moment. */
export async function isWithoutGateway(client: Client): Promise<boolean> {
  if (!(await tryGatewayLock(client))) return false;
  await client.query(`select pg_advisory_unlock(${lockKey})`);
  return true;
}

/**
 * Tries to make this session one of several gateways, and the only one of its own key. A gateway
 * that needs the database for itself keeps the others out, and they keep it out. The own key proves
 * that the former session of this gateway has ended.
 */
export async function trySharedGatewayLock(client: Client, ownKey: number): Promise<boolean> {
  const { rows } = await client.query(
    `select pg_try_advisory_lock_shared(${lockKey}) and pg_try_advisory_lock(${ownKey}) as locked`,
  );
  if (lockedSchema.parse(rows[0]).locked) return true;
  await client.query("select pg_advisory_unlock_all()");
  return false;
}

/** Returns the server's identity of this session. */
export async function sessionIdentity(client: Client): Promise<SessionIdentity> {
  const { rows } = await client.query(
    `select pid, backend_start::text as "startedAt" from pg_stat_activity where pid = pg_backend_pid()`,
  );
  return identitySchema.parse(rows[0]);
}

/**
 * Returns whether a pooler lends one session to both connections: while the second has it for a
 * transaction, the first would be given another.
 */
export async function sharesSession(client: Client, other: Client): Promise<boolean> {
  const pidOf = async (connection: Client): Promise<number> => {
    const { rows } = await connection.query("select pg_backend_pid() as pid");
    return pidSchema.parse(rows[0]).pid;
  };
  const before = await pidOf(client);
  await other.query("begin");
  try {
    return (await pidOf(other)) === before || (await pidOf(client)) !== before;
  } finally {
    await other.query("rollback");
  }
}

/**
 * Ends this gateway's own former session where the server still keeps it, and with it the lock that
 * it holds.
 */
export async function endSession(
  client: Client,
  { pid, startedAt }: SessionIdentity,
): Promise<void> {
  await client.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and backend_start::text = $2" +
      // A pooler may have lent it to another connection since.
      " and application_name = 'switchyard commits'",
    [pid, startedAt],
  );
}

/** Returns the holder of the lock, for the message that refuses to start. */
export async function lockHolder(client: Client): Promise<string> {
  const { rows } = await client.query(
    `select format('process %s from %s since %s',
       a.pid, coalesce(host(a.client_addr), 'a local socket'), a.backend_start) as holder
     from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and l.objsubid = 1
       and (l.classid::bigint << 32) + l.objid::bigint = ${lockKey}
       and l.database = (select oid from pg_database where datname = current_database())`,
  );
  return holderSchema.optional().parse(rows[0])?.holder ?? "an unknown process";
}
