/**
 * A possible member of a `PassingSet`, which stores the member's index in `place`; -1 while it is
 * in none.
 */
export interface Passing {
  place: number;
}

/**
 * An unordered set for objects that come and go with requests, whose members know their own index.
 * A `Set` or `Map` of JavaScriptCore replaces its table every few insertions and deletions, and an
 * outgrown table refers to the next one. A table that has survived a garbage collection keeps all
 * later ones alive, with everything that was ever in them, until the next collection of the whole
 * heap: some 8 KB of each request remained so. This set reuses its memory in place.
 */
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
