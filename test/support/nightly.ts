/**
 * Whether this is the nightly run, `npm test -- --engines=all`: it repeats what by default is done
 * a few times, and takes each case where by default every value meets one case.
 */
export const isNightly = process.env["TEST_ENGINES"] === "all";
