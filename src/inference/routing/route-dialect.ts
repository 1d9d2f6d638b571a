import type { DialectId } from "../canonical/dialect-id.ts";
import type { UpstreamRoute } from "../catalog/model.ts";

/** The facts about a request on which the dialect of its route depends. */
interface AskingRequest {
  dialect: DialectId;
  requirements: {
    needsTools: boolean;
    searches?: boolean;
    thinks?: boolean | undefined;
    choices: number;
  };
}

const inSecondDialect = new WeakMap<UpstreamRoute, UpstreamRoute>();

/**
 * Returns the route in the dialect that suits a request: the client's own where the provider serves
 * the model in it, and the one in which a model that reasons takes tools, unless reasoning is off,
 * and in which it searches the web. A request for several answers is left where those can be had,
 * if that is possible with tools. The same route is returned for the same choice.
 */
export function routeFor(
  route: UpstreamRoute,
  { dialect, requirements: { needsTools, searches, thinks, choices } }: AskingRequest,
): UpstreamRoute {
  const { secondDialect: second } = route;
  if (second === undefined) return route;
  const leaves = second.toolsAlone === true || (thinks !== false && choices <= 1);
  const bringsTools = second.takesTools && needsTools && leaves;
  // In chat, only models that always search take a search.
  const bringsSearch = searches === true && choices <= 1 && !route.upstreamModel.includes("search");
  if (second.dialect !== dialect && !bringsTools && !bringsSearch) return route;
  let other = inSecondDialect.get(route);
  if (other === undefined)
    inSecondDialect.set(route, (other = { ...route, dialect: second.dialect }));
  return other;
}
