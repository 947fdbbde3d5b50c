-- The names and descriptions of the items in Australia.
-- XMark, Query 13, as SQL over the streams of the document.
-- Nothing is kept. The end of a region closes it (item.region).
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE item USING xmark OPTIONS (path '${XMARK}', stream 'item');

SELECT name, description FROM item WHERE region = 'australia';
