/** Values by request id. It reuses its memory in place, for the reason that `PassingSet` gives. */
export class PassingMap<Value extends object> {
  private readonly byId: Record<string, Value> = Object.create(null);
  private count = 0;

  get size(): number {
    return this.count;
  }

  get(id: string): Value | undefined {
    return this.byId[id];
  }

  has(id: string): boolean {
    return this.byId[id] !== undefined;
  }

  set(id: string, value: Value): void {
    if (!this.has(id)) this.count += 1;
    this.byId[id] = value;
  }

  /** Removes a value; returns false where there was none. */
  delete(id: string): boolean {
    if (!this.has(id)) return false;
    delete this.byId[id];
    this.count -= 1;
    return true;
  }

  /** Returns every id with its value, oldest first. */
  entries(): [id: string, value: Value][] {
    return Object.entries(this.byId);
  }

  values(): Value[] {
    return Object.values(this.byId);
  }
}
