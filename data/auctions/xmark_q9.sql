-- Each person with the items they bought in Europe; null for those who bought none.
-- XMark, Query 9, as SQL over the streams of the document.
-- Unique ids (item.id, person.id) purge sales; the end of the closed auctions (closed_auction.*) purges items and
-- people, and tells who bought nothing.

CREATE TABLE person USING xmark OPTIONS (path '${XMARK}', stream 'person');
CREATE TABLE closed_auction USING xmark OPTIONS (path '${XMARK}', stream 'closed_auction');
CREATE TABLE item USING xmark OPTIONS (path '${XMARK}', stream 'item');

SELECT p.id, p.name, t.item
FROM person p LEFT JOIN (
  SELECT c.buyer, i.name AS item
  FROM closed_auction c JOIN item i ON i.id = c.itemref
  WHERE i.region = 'europe'
) t ON t.buyer = p.id;
