import { nanoFromUsd, usdFromNano } from "../../../platform/kernel/money.ts";
import { type JsonFields, isObject, fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** Adds the numbers of two usages, member by member. */
function sumOf(left: JsonFields, right: JsonFields): Record<string, unknown> {
  const sum: Record<string, unknown> = { ...left };
  for (const [name, value] of Object.entries(right)) {
    const before = sum[name];
    if (typeof value === "number") sum[name] = typeof before === "number" ? before + value : value;
    else if (isObject(value)) sum[name] = sumOf(fieldsOf(before), value);
    else sum[name] = value;
  }
  return sum;
}

/** The usage and the cost of all rounds of a request, and of the tools between them. */
export class RoundUsage {
  private sum: JsonFields | undefined;
  private costNano = 0n;
  private toolsNano = 0n;
  private showsCost = false;

  /** Adds the usage object of a round, with its `cost`. */
  addRound(usage: unknown): void {
    if (!isObject(usage)) return;
    const { cost, ...rest } = usage;
    if (typeof cost === "number") {
      this.showsCost = true;
      this.costNano += nanoFromUsd(cost) ?? 0n;
    }
    this.sum = sumOf(this.sum ?? {}, rest);
  }

  /** Adds the price of a tool call. */
  addTool(nano: bigint): void {
    this.toolsNano += nano;
  }

  /** The charges of all rounds and tools, in nano-USD. */
  get chargedNano(): bigint {
    return this.costNano + this.toolsNano;
  }

  /** Returns the usage object of the whole; null where no round reported one. */
  get total(): Record<string, unknown> | null {
    if (this.sum === undefined) return null;
    return this.showsCost || this.toolsNano > 0n
      ? { ...this.sum, cost: usdFromNano(this.chargedNano) }
      : { ...this.sum };
  }
}
