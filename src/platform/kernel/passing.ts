/**
 * Collections for objects that come and go with requests. A `Set` or `Map` of JavaScriptCore
 * replaces its table every few insertions and deletions, and an outgrown table refers to the next
 * one. A table that has survived a garbage collection keeps all later ones alive, with everything
 * that was ever in them, until the next collection of the whole heap: some 8 KB of each request
 * remained so. These collections reuse their memory in place.
 */

/**
 * A possible member of a `PassingSet`, which stores the member's index in `place`; -1 while it is
 * in none.
 */
export interface Passing {
  place: number;
}

/** A set whose members know their own index; unordered. */
export class PassingSet<Member extends Passing> {
  private readonly members: Member[] = [];

  get size(): number {
    return this.members.length;
  }

  /** Adds a member that is in no set. */
  add(member: Member): void {
    if (member.place < 0) member.place = this.members.push(member) - 1;
  }

  /** Removes a member; the last member takes its place. */
  delete(member: Member): void {
    const { place } = member;
    if (place < 0) return;
    member.place = -1;
    const last = this.members.pop();
    if (last === undefined || last === member) return;
    this.members[place] = last;
    last.place = place;
  }

  /** Calls `visit` for each member. It may remove that member. */
  forEach(visit: (member: Member) => void): void {
    for (let place = this.members.length - 1; place >= 0; place -= 1) {
      const member = this.members[place];
      if (member !== undefined) visit(member);
    }
  }

  clear(): void {
    this.forEach((member) => this.delete(member));
  }
}

/** Values by request id. */
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
