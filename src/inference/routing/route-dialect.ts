import type { DialectId } from "../canonical/dialect-id.ts";
import { isFilled, nestedField } from "../dialects/requirements.ts";
import type { UpstreamRoute } from "../catalog/model.ts";

/** The parts of a request on which the dialect of its route depends. */
interface AskingRequest {
  dialect: DialectId;
  body: Readonly<Record<string, unknown>>;
}

const inSecondDialect = new WeakMap<UpstreamRoute, UpstreamRoute>();

/**
 * Returns the route in the dialect that suits a request: the client's own where the provider serves
 * the model in it, and the one in which a model that reasons takes tools. The same route is returned
 * for the same choice.
 */
export function routeFor(route: UpstreamRoute, request: AskingRequest): UpstreamRoute {
  const { secondDialect: second } = route;
  if (second === undefined) return route;
  const suits =
    second.dialect === request.dialect || (second.takesTools && reasonsBesideTools(request.body));
  if (!suits) return route;
  let other = inSecondDialect.get(route);
  if (other === undefined)
    inSecondDialect.set(route, (other = { ...route, dialect: second.dialect }));
  return other;
}

/**
 * Returns whether a request offers tools without turning reasoning off. One that asks for several
 * answers is left where those can be had.
 */
function reasonsBesideTools(body: AskingRequest["body"]): boolean {
  if (!isFilled(body["tools"]) && !isFilled(body["functions"])) return false;
  const isOff =
    body["reasoning_effort"] === "none" ||
    nestedField(body, "reasoning", "effort") === "none" ||
    nestedField(body, "reasoning", "enabled") === false ||
    nestedField(body, "thinking", "type") === "disabled";
  return !isOff && (typeof body["n"] !== "number" || body["n"] <= 1);
}
