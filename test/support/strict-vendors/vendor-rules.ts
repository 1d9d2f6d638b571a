import type { VendorRequest, VendorRule } from "./rule.ts";
import { amazonBedrockRules } from "./vendors/amazon-bedrock.ts";
import { anthropicRules } from "./vendors/anthropic.ts";
import { azureRules } from "./vendors/azure.ts";
import { cohereRules } from "./vendors/cohere.ts";
import { hostedCompletionRules } from "./vendors/completions.ts";
import { deepseekRules } from "./vendors/deepseek.ts";
import { googleRules } from "./vendors/google.ts";
import { groqRules } from "./vendors/groq.ts";
import { mistralRules } from "./vendors/mistral.ts";
import { moonshotaiRules } from "./vendors/moonshotai.ts";
import { openaiRules } from "./vendors/openai.ts";
import { openrouterRules } from "./vendors/openrouter.ts";
import { llamaCppCompletionRules, llamaCppRules, vllmRules } from "./vendors/servers.ts";
import { xaiRules } from "./vendors/xai.ts";
import { zaiRules } from "./vendors/zai.ts";

/** Every known refusal of every vendor, in the order in which a vendor checks them. */
export const vendorRules: readonly VendorRule[] = [
  ...openaiRules,
  ...azureRules,
  ...anthropicRules,
  ...amazonBedrockRules,
  ...googleRules,
  ...mistralRules,
  ...deepseekRules,
  ...moonshotaiRules,
  ...zaiRules,
  ...xaiRules,
  ...groqRules,
  ...openrouterRules,
  ...cohereRules,
  ...vllmRules,
  ...llamaCppRules,
  ...llamaCppCompletionRules,
  ...hostedCompletionRules,
];

/** Returns a rule's name among those of all vendors, such as `mistral/call-id`. */
export const nameOf = ({ vendor, id }: VendorRule): string => `${vendor}/${id}`;

/** Returns the rules by which a vendor refuses a request, in order; none where it is taken. */
export const refusalsOf = (vendor: string, request: VendorRequest): VendorRule[] =>
  vendorRules.filter(
    (rule) =>
      rule.vendor === vendor &&
      rule.endpoint === request.endpoint &&
      rule.models.test(request.model) &&
      rule.when(request),
  );
