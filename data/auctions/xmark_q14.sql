-- The names of all items whose description has the word gold in it.
-- XMark, Query 14, as SQL over the streams of the document.
-- Nothing is kept. Every id is unique (item.id), the end of the regions closes the rest.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE item USING xmark OPTIONS (path '${XMARK}', stream 'item');

SELECT name FROM item WHERE contains(description, 'gold');
