import { z } from "zod";
import { preferencesMax } from "../../account/people/preferences.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { forSessions, sessionOf } from "./people-fields.ts";

const valueBytesMax = 2_048;
const bodyBytesMax = 64 * 1024;

const namePattern = /^[a-z][a-z0-9_.-]{0,63}$/;

const nameField = z
  .string()
  .regex(
    namePattern,
    "is no name of a preference: lower-case letters, digits, dots, dashes, at most 64, a letter first",
  );

const isKept = (text: string): boolean => !text.includes("\\u0000") && text.length <= valueBytesMax;

const valueField = z
  .json()
  .refine(
    (value) => isKept(JSON.stringify(value)),
    `must be at most ${valueBytesMax} characters of JSON`,
  );

const changesSchema = z.record(nameField, valueField);

const preferencesSchema = z.object({
  object: z.literal("preferences"),
  preferences: z.record(z.string(), z.json()),
});

const shared = {
  ...forSessions,
  path: "/session/preferences",
  anywhere: true,
  response: preferencesSchema,
} as const;

/** Shows the preferences of the user. */
export const getPreferences = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  summary: "Show the preferences of the user.",
  description:
    "What clients keep for a person: theme, time zone, what was dismissed. They follow the user to every browser; the service " +
    "itself reads none of them.",
  async handle(context, { people }) {
    return context.json({
      object: "preferences",
      preferences: await people.preferences.of(sessionOf(context).user.id),
    });
  },
});

/** Changes preferences of the user. */
export const changePreferences = defineEndpoint<Dependencies, z.infer<typeof changesSchema>>({
  ...shared,
  method: "PATCH",
  unaudited: true,
  bodyBytesMax,
  summary: "Change preferences of the user.",
  description:
    `Values by name: any JSON of at most ${valueBytesMax} characters, ${preferencesMax} names at most. Names that are left out ` +
    "stay as they are; null takes one away.",
  body: changesSchema,
  async handle(context, { people }) {
    return context.json({
      object: "preferences",
      preferences: await people.preferences.change(sessionOf(context).user.id, context.body),
    });
  },
});
