-- All items and where they are, in the order of their locations.
-- XMark, Query 19, as SQL over the streams of the document.
-- Any item may be the first, so the order begins at the end of the regions (item.*).
-- Verdict, followed: refused, sort never answers, since nothing closes location.

CREATE TABLE item USING xmark OPTIONS (path '${XMARK}', stream 'item');

SELECT name, location FROM item ORDER BY location;
