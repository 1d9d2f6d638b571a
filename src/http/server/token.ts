/** A name as HTTP has them, of a method or a header (RFC 9110, 5.6.2). */
export const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
