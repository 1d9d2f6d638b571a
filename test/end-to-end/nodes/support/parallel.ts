/** Does work many times, so many at once, and gives what came of each. */
export async function parallel<Result>(
  { count, atOnce }: { count: number; atOnce: number },
  work: (index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < count) {
        const index = next++;
        results[index] = await work(index);
      }
    }),
  );
  return results;
}
