/**
 * Settles records and archives them once, to be killed while the archive holds its answer back.
 * Arguments: the URLs of the database and of the archive, and how many records.
 */
import { openArchived } from "./archive.ts";
import { recordInSeries } from "./generation-records.ts";

const [url = "", archiveUrl = "", count = "0"] = process.argv.slice(2);
const { archive, settle } = await openArchived({ url, archiveUrl });
await settle(...Array.from({ length: Number(count) }, (_, index) => recordInSeries(index)));
await archive.archiver.round();
