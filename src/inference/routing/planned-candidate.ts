import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import { comparablePrice, type Candidate, type RoutingRequest } from "./candidate.ts";
import type { RouteRow } from "./route-rows.ts";

/** What all candidates of one requested model, or router, have in common. */
export type Requested = Pick<Candidate, "modelIndex" | "router"> &
  Pick<RoutingRequest, "inputTokens">;

/**
 * A candidate of a plan under way. Whatever explains its place are texts that many candidates share; they are put together
 * when somebody reads the reason, which of most candidates nobody does. A copy by spread has to name `reason`.
 */
export class PlannedCandidate implements Candidate {
  readonly row: RouteRow;
  readonly model: CatalogModel;
  readonly route: UpstreamRoute;
  readonly modelIndex: number;
  readonly router: CatalogModel | undefined;
  readonly price: number;
  memberReason = "";
  /** Why it stands where it does among the routes that it was compared with. */
  place = "only route";
  /** What matters more than its place. */
  note = "";
  /** The soft preference that it misses. */
  missed: string | undefined;
  /** What it is sorted by, the lowest first: the price, unless the request says otherwise. */
  cost: number;

  constructor(row: RouteRow, { modelIndex, router, inputTokens }: Requested) {
    this.row = row;
    this.model = row.model;
    this.route = row.route;
    this.modelIndex = modelIndex;
    this.router = router;
    this.price = row.price ?? comparablePrice(row.route, inputTokens);
    this.cost = this.price;
  }

  get reason(): string {
    const reason = this.memberReason === "" ? this.place : `${this.memberReason}; ${this.place}`;
    return this.note === "" ? reason : `${this.note}; ${reason}`;
  }
}
