import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { providerLogoSvg } from "../../inference/catalog/provider-logo.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/** The picture that stands for a provider. */
export const providerLogo = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/logos/:file",
  base: "root",
  access: { open: true },
  counting: "at-door",
  tag: "Catalog",
  summary: "Show the logo of a provider.",
  otherResponseTypes: ["image/svg+xml"],
  encodeError: encodeContractError,
  handle(context, { inference }) {
    const provider = inference.catalog().providers.get(context.param("file").replace(/\.svg$/, ""));
    if (provider === undefined) throw new GatewayError("not_found", "There is no such logo.");
    return new Response(providerLogoSvg(provider), {
      headers: {
        "content-type": "image/svg+xml",
        "cache-control": "public, max-age=86400",
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'",
        ...context.headers,
      },
    });
  },
});
