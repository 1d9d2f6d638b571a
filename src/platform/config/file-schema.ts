import { z } from "zod";
import { addressRangeSchema, archiveUrlSchema, httpUrlSchema, sharedUrlSchema, storageUrlSchema } from "./url-settings.ts";

/** Plans whose tiers can be overridden, by their wire ids. */
export const planIds = ["free", "payg", "go", "pro", "pro_plus", "max", "enterprise"] as const;

/** A number that came out of an environment reference is text. */
const numberFromText = (value: unknown): unknown =>
  typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
const booleanFromText = (value: unknown): unknown =>
  value === "true" ? true : value === "false" ? false : value;

const integer = (minimum: number, maximum: number) => {
  const message = `expected an integer from ${minimum} to ${maximum}`;
  return z.preprocess(numberFromText, z.int(message).min(minimum, message).max(maximum, message));
};
const days = integer(1, 36_500);
const requests = integer(1, 1_000_000_000);
const name = z.string().min(1, "expected a text that is not empty");
const modelId = z.string().regex(/^[^/\s]+\/\S+$/, "expected a model id written as owner/model");

const serverSchema = z.strictObject({
  host: name,
  port: integer(0, 65_535),
  public_url: httpUrlSchema,
  trust_proxy: z.preprocess(booleanFromText, z.union([z.boolean(), z.array(addressRangeSchema)])),
}).partial();

const retentionSchema = z.strictObject({
  generations_days: days,
  responses_days: days,
  log_budget_gb: z.preprocess(numberFromText, z.number().positive("expected a number above 0")),
}).partial();

const routerSchema = z.strictObject({
  members: z.array(modelId).min(1, "expected at least one model"),
  quality: z.array(modelId).optional(),
});

const planSchema = z.strictObject({ per_minute: requests, five_hour: requests.optional() });

/** The schema of switchyard.yaml; providers are checked by the schema of those who use them. */
export const createFileSchema = <Provider extends z.ZodType>(provider: Provider) => z.strictObject({
  server: serverSchema,
  storage: z.strictObject({ url: storageUrlSchema, durability: z.enum(["power", "process"]) }).partial(),
  shared: z.strictObject({ url: sharedUrlSchema }).partial(),
  archive: z.strictObject({ url: archiveUrlSchema }).partial(),
  retention: retentionSchema,
  disconnect: z.enum(["abort", "drain"]),
  providers: z.array(provider),
  sandbox: z.strictObject({ enabled: z.preprocess(booleanFromText, z.union([z.literal("auto"), z.boolean()])) }).partial(),
  routers: z.record(modelId, routerSchema),
  plans: z.partialRecord(z.enum(planIds), planSchema),
}).partial();

/** What a valid file holds. */
export type FileSettings<Provider extends z.ZodType> = z.output<ReturnType<typeof createFileSchema<Provider>>>;
