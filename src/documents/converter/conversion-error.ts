/** A file that cannot be converted, through no fault of the converter; `message` is for the caller. */
export class RefusedFile extends Error {
  override name = "RefusedFile";
}

/** A library or its data that this installation lacks. */
export class MissingPart extends Error {
  override name = "MissingPart";
}

/** What was loaded; throws `MissingPart` when it cannot be. */
export async function loaded<Part>(part: Promise<Part>): Promise<Part> {
  return part.catch((error: unknown) => {
    throw new MissingPart(String(error), { cause: error });
  });
}
