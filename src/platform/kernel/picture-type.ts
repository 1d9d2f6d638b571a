/** Media types of pictures that providers read, with the beginning of their bytes in base64. */
const beginnings = {
  "image/jpeg": "/9j/",
  "image/png": "iVBORw0KGgo",
  "image/gif": "R0lGOD",
  "image/webp": "UklGR",
} as const;

/** The media type of a picture that providers read. */
export type PictureType = keyof typeof beginnings;

const types = Object.keys(beginnings) as PictureType[];

/** Returns whether a media type is one of `PictureType`. */
export const isPictureType = (mediaType: string): mediaType is PictureType =>
  Object.hasOwn(beginnings, mediaType);

/**
 * Returns the media type of a picture by its base64, which a client may have declared otherwise;
 * undefined where it begins like none of them.
 */
export const pictureTypeOf = (base64: string): PictureType | undefined =>
  types.find((type) => base64.startsWith(beginnings[type]));
