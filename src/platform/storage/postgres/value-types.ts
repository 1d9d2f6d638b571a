import { type CustomTypesConfig, types } from "pg";

/** Object ids of the built-in types, from PostgreSQL's pg_type.dat. */
const int8Oid = 20;
const numericOid = 1700;

/**
 * Returns integers, and the numeric sums of integers, as numbers within 2^53 and as bigint beyond.
 */
export const valueTypes: CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    oid === int8Oid || oid === numericOid ? parseExactly : types.getTypeParser(oid, format),
};

function parseExactly(text: string): number | bigint {
  const number = Number(text);
  return Number.isSafeInteger(number) || !/^-?\d+$/.test(text) ? number : BigInt(text);
}
