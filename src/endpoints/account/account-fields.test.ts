import { expect, test } from "bun:test";
import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import {
  emailField,
  nameField,
  newPasswordField,
  passwordField,
  plainText,
} from "./account-fields.ts";
import { linkTokenField } from "../session/password-reset.ts";

const told = (field: z.ZodType, value: unknown): string | undefined => {
  try {
    checkBody(z.object({ field }), { field: value });
    return undefined;
  } catch (error) {
    return error instanceof GatewayError ? error.message : String(error);
  }
};

test.each([
  ["a name", nameField, 200],
  ["a text", plainText(30), 30],
  ["an address", emailField, 254],
  ["a token", linkTokenField, 200],
  ["a password", passwordField, 256],
  ["a new password", newPasswordField, 256],
] as const)("%s that is too long is reported as too long, not as missing", (_, field, most) => {
  expect(told(field, "a".repeat(most + 1))).toBe(`field: must have at most ${most} characters`);
  expect(told(field, 5)).toContain("field: ");
});
